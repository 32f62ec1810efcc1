/** The metric families of the Go sidecar v6.4, as data: what its users' dashboards and alerts may rely on. */

type Row = readonly [
  name: string,
  type: 'counter' | 'gauge' | 'histogram',
  stability: 'ALPHA' | 'BETA' | undefined,
  labels: readonly string[],
  buckets?: string,
];

const defaultBuckets = '0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10';
const queueBuckets = '1e-08 1e-07 1e-06 9.999999999999999e-06 9.999999999999999e-05 0.001 0.01 0.1 1 10';

/** The functional families, without the label `migrated`, which only drivers of in-tree plugins have. */
export const goFamilies: readonly Row[] = [
  [
    'csi_sidecar_operations_seconds',
    'histogram',
    'ALPHA',
    ['driver_name', 'method_name', 'grpc_status_code'],
    '0.1 0.25 0.5 1 2.5 5 10 15 25 50 120 300 600',
  ],
  ['controller_persistentvolumeclaim_provision_total', 'counter', undefined, ['class', 'source']],
  ['controller_persistentvolumeclaim_provision_failed_total', 'counter', undefined, ['class', 'source']],
  [
    'controller_persistentvolumeclaim_provision_duration_seconds',
    'histogram',
    undefined,
    ['class', 'source'],
    defaultBuckets,
  ],
  ['controller_persistentvolume_delete_total', 'counter', undefined, ['class']],
  ['controller_persistentvolume_delete_failed_total', 'counter', undefined, ['class']],
  ['controller_persistentvolume_delete_duration_seconds', 'histogram', undefined, ['class'], defaultBuckets],
  ['workqueue_depth', 'gauge', 'BETA', ['name']],
  ['workqueue_adds_total', 'counter', 'BETA', ['name']],
  ['workqueue_retries_total', 'counter', 'BETA', ['name']],
  ['workqueue_queue_duration_seconds', 'histogram', 'BETA', ['name'], queueBuckets],
  ['workqueue_work_duration_seconds', 'histogram', 'BETA', ['name'], queueBuckets],
  ['workqueue_unfinished_work_seconds', 'gauge', 'BETA', ['name']],
  ['workqueue_longest_running_processor_seconds', 'gauge', 'BETA', ['name']],
  ['leader_election_master_status', 'gauge', 'ALPHA', ['name']],
  ['leader_election_slowpath_total', 'counter', 'ALPHA', ['name']],
  ['csistoragecapacities_desired_goal', 'gauge', 'ALPHA', []],
  ['csistoragecapacities_desired_current', 'gauge', 'ALPHA', []],
  ['csistoragecapacities_obsolete', 'gauge', 'ALPHA', []],
];

/** Families about the process that are provided where the platform has them. */
export const goProcessFamilies: readonly (readonly [name: string, type: 'counter' | 'gauge'])[] = [
  ['process_cpu_seconds_total', 'counter'],
  ['process_resident_memory_bytes', 'gauge'],
  ['process_virtual_memory_bytes', 'gauge'],
  ['process_virtual_memory_max_bytes', 'gauge'],
  ['process_start_time_seconds', 'gauge'],
  ['process_open_fds', 'gauge'],
  ['process_max_fds', 'gauge'],
  ['process_network_receive_bytes_total', 'counter'],
  ['process_network_transmit_bytes_total', 'counter'],
  ['promhttp_metric_handler_requests_in_flight', 'gauge'],
  ['promhttp_metric_handler_requests_total', 'counter'],
];

/** What we have instead of the Go runtime's families. */
export const ownFamilies: readonly string[] = [
  'reflector_lists_total',
  'reflector_watches_total',
  'reflector_short_watches_total',
  'reflector_errors_total',
  'reflector_silence_seconds',
  'claim_cache_bytes',
  'leader_election_failures_total',
  'audit_unchecked_seconds',
  'audit_volumes',
  'audit_last_run_duration_seconds',
  'audit_interval_seconds',
  'audit_last_complete_run_timestamp_seconds',
  'audit_last_run_complete',
  'intent_journal_records',
  'intent_journal_oldest_record_age_seconds',
  'intent_journal_replayed_total',
  'intent_journal_waiting_records',
  'intent_journal_revoked_total',
  'intent_journal_reported_total',
  'intent_journal_write_duration_seconds',
  'intent_journal_written_bytes_total',
  'intent_journal_bytes',
  'intent_journal_protected',
  'intent_journal_unprotected_total',
  'csi_provisioner_build_info',
  'csi_call_timeout_seconds',
  'waiting_claims',
  'waiting_claims_oldest_seconds',
  'failing_claims',
  'failing_claims_oldest_seconds',
  'released_volumes',
  'released_volumes_oldest_seconds',
  'nodejs_version_info',
  'nodejs_heap_size_total_bytes',
  'nodejs_heap_size_used_bytes',
  'nodejs_heap_size_limit_bytes',
  'nodejs_external_memory_bytes',
  'nodejs_eventloop_active_seconds_total',
  'nodejs_eventloop_idle_seconds_total',
];
