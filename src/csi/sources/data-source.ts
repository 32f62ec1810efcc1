import { shortValue } from '../../base/short-value.ts';
import type { Lister } from '../../kube/cache/store.ts';
import { allowsSource, type PersistentVolumeClaim, type ReferenceGrant } from '../../provision/objects.ts';
import { ProvisionError } from '../../provision/provisioner.ts';
import type { Plan } from '../../provision/recoverable.ts';

export const snapshotGroup = 'snapshot.storage.k8s.io';

/** Where a new volume takes its content from, with every default filled in. */
export interface DataSource {
  kind: string;
  name: string;
  /** Empty for the core group. */
  apiGroup: string;
  namespace: string;
}

/** `populator`: an external volume populator provisions and fills the volume. */
type SourceHandling = 'snapshot' | 'clone' | 'populator';

/** A data source that the driver copies from. */
export interface ContentSource extends DataSource {
  handling: Exclude<SourceHandling, 'populator'>;
}

/**
 * The claim's data source: `dataSource`, else `dataSourceRef` (Kubernetes, "Volume Cloning", "Cross namespace data
 * sources").
 *
 * @throws {ProvisionError} state `finished` when a namespace is named although the gate is off.
 */
export function dataSourceOf(
  claim: PersistentVolumeClaim,
  options: { crossNamespace: boolean },
): DataSource | undefined {
  const { dataSource, dataSourceRef } = claim.spec;
  const ownNamespace = claim.metadata.namespace ?? '';
  const source = dataSource ?? dataSourceRef;
  if (source === undefined) return undefined;
  const named = (dataSource === undefined ? dataSourceRef?.namespace : undefined) ?? '';
  if (named !== '' && !options.crossNamespace) {
    throw new ProvisionError(
      'dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled',
      { state: 'finished' },
    );
  }
  return {
    kind: source.kind,
    name: source.name,
    apiGroup: source.apiGroup ?? '',
    namespace: named === '' ? ownNamespace : named,
  };
}

/**
 * What handles a data source.
 *
 * @throws {ProvisionError} state `finished` for an empty name, or a snapshot of another group.
 */
export function sourceHandling(source: DataSource, claimName: string): SourceHandling {
  if (source.name === '') {
    throw new ProvisionError(`the PVC source not found for PVC ${claimName}`, { state: 'finished' });
  }
  if (source.kind === 'PersistentVolumeClaim') return 'clone';
  if (source.kind !== 'VolumeSnapshot') return 'populator';
  if (source.apiGroup === snapshotGroup) return 'snapshot';
  throw new ProvisionError(
    `the PVC source does not belong to the right APIGroup. Expected ${snapshotGroup}, Got ${shortValue(source.apiGroup)}`,
    { state: 'finished' },
  );
}

/** Whether claims of a namespace may take their content from a source in another. Several grants are alternatives (Gateway API, "ReferenceGrant"). */
export function isGranted(grants: Lister<ReferenceGrant>, claimNamespace: string, source: DataSource): boolean {
  for (const grant of grants.list())
    if (grant.metadata.namespace === source.namespace && allowsSource(grant, claimNamespace, source)) return true;
  return false;
}

/**
 * Why a claim may not use a source; undefined where it may.
 *
 * @param grants - undefined where the gate is off: then nothing of another namespace may be used.
 */
export function whyNotGranted(
  grants: Lister<ReferenceGrant> | undefined,
  claim: { namespace: string; name: string },
  source: DataSource,
): string | undefined {
  const { namespace, name } = claim;
  if (source.namespace === namespace || (grants !== undefined && isGranted(grants, namespace, source)))
    return undefined;
  return `accessing ${shortValue(source.namespace)}/${shortValue(source.name)} of ${shortValue(source.kind)} dataSource from ${namespace}/${name} isn't allowed`;
}

/** The source of a plan as its claim names it. */
export function plannedDataSource({ handling, namespace, name }: PlannedSource): DataSource {
  return handling === 'clone'
    ? { kind: 'PersistentVolumeClaim', apiGroup: '', namespace, name }
    : { kind: 'VolumeSnapshot', apiGroup: snapshotGroup, namespace, name };
}

/** The object that must not be deleted while the driver copies from it. */
export type PlannedSource =
  | { handling: 'clone'; namespace: string; name: string; /** Of the claim that was read. */ uid: string }
  | { handling: 'snapshot'; namespace: string; name: string };

/** A source from which a volume in progress is copied, and for which claim. */
export interface OpenSource {
  claimUid: string;
  /** Namespace and name of that claim, which may be gone; its UID, where the plan does not say. */
  claim: string;
  source: PlannedSource;
}

/** The source that a plan names, also where the plan cannot be fulfilled: until it is discarded it counts. */
export function openSource(plan: Plan): OpenSource | undefined {
  const { claim: of, source } = plan as Readonly<
    Record<'claim' | 'source', Partial<Record<string, unknown>> | undefined>
  >;
  const { handling, namespace, name, uid } = source ?? {};
  const claimUid = of?.['uid'];
  if (typeof claimUid !== 'string' || typeof namespace !== 'string' || typeof name !== 'string') return undefined;
  const [ofNamespace, ofName] = [of?.['namespace'], of?.['name']];
  const claim = typeof ofNamespace === 'string' && typeof ofName === 'string' ? `${ofNamespace}/${ofName}` : claimUid;
  if (handling === 'snapshot') return { claimUid, claim, source: { handling, namespace, name } };
  if (handling !== 'clone' || typeof uid !== 'string') return undefined;
  return { claimUid, claim, source: { handling, namespace, name, uid } };
}

/** The sources of volumes that are recorded and may be in progress. */
export function* openSources(plans: Iterable<Plan>): Generator<OpenSource> {
  for (const plan of plans) {
    const open = openSource(plan);
    if (open !== undefined) yield open;
  }
}
