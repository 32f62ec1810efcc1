/** What the running program answers on /metrics once it has seen some of everything. */
import assert from 'node:assert/strict';
import { PatchStrategy } from '@kubernetes/client-node';
import { freePort } from '../support/free-ports.ts';
import { openScene, type Scene } from '../support/scene.ts';
import { parseExposition, type MetricFamily } from './exposition.ts';

/** The families of one answer by their names. */
export type LiveMetrics = ReadonlyMap<string, MetricFamily>;

let metrics: Promise<LiveMetrics> | undefined;

/**
 * Runs the sidecar as a process against the sandbox and the sample driver, has volumes made and deleted, well and
 * badly, and reads its metrics; once for all tests in this process.
 */
export async function liveMetrics(): Promise<LiveMetrics> {
  metrics ??= livePage().then(families);
  return await metrics;
}

/** The response that `liveMetrics` reads. */
export async function livePage(): Promise<string> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/metrics`;
  const scene = await openScene({
    sidecarFlags: [
      `--http-endpoint=127.0.0.1:${port}`,
      '--leader-election',
      '--enable-capacity',
      '--audit-interval=500ms',
      '--capacity-ownerref-level=-1',
      '--leader-election-lease-duration=30s',
      '--leader-election-renew-deadline=20s',
      '--leader-election-retry-period=300ms',
    ],
    rbac: ['components/capacity/rbac.yaml', 'components/leader-election/rbac.yaml'],
  });
  try {
    await makeAndDelete(scene);
    await leaveSome(scene);
    return await scene.eventually(async () => {
      await disturbLease(scene);
      const page = await scrape(url);
      const live = families(page);
      assert.ok(live.has('leader_election_slowpath_total'), 'no renewal needed a second request yet');
      for (const name of ['waiting_claims', 'failing_claims', 'released_volumes'])
        assert.ok((live.get(name)?.samples.size ?? 0) > 0, `no ${name} yet`); // they are counted every ten seconds
      assert.ok((live.get('audit_last_complete_run_timestamp_seconds')?.samples.size ?? 0) > 0, 'no audit yet');
      return page;
    });
  } finally {
    await scene.close();
  }
}

/** One claim whose volume fails once to be made and once to be deleted. */
async function makeAndDelete(scene: Scene): Promise<void> {
  await scene.driver.setFaults([
    { method: 'CreateVolume', code: 'UNAVAILABLE', times: 1 },
    { method: 'DeleteVolume', code: 'INTERNAL', times: 1 },
  ]);
  const { metadata } = await scene.createClaim({ className: await scene.createClass() });
  const name = metadata?.name ?? '';
  const { volume } = await scene.bound(name);
  await scene.deleteClaim(name);
  await scene.volumeGone(volume.metadata?.name ?? '');
}

/** A claim that waits for a Pod, one that fails, and a released volume that cannot be deleted. */
async function leaveSome(scene: Scene): Promise<void> {
  const className = await scene.createClass();
  const { metadata } = await scene.createClaim({ className });
  const name = metadata?.name ?? '';
  await scene.bound(name);
  await scene.driver.setFaults([
    { method: 'CreateVolume', code: 'RESOURCE_EXHAUSTED', times: 1000 },
    { method: 'DeleteVolume', code: 'INTERNAL', times: 1000 },
  ]);
  await scene.deleteClaim(name);
  await scene.createClaim({ className });
  await scene.createClaim({
    className: await scene.createClass({ volumeBindingMode: 'WaitForFirstConsumer' }),
    annotations: { 'volume.kubernetes.io/storage-provisioner': scene.driver.driverName }, // usually once a node is selected
  });
}

/** Somebody else writes the lease, so that the leader's next renewal meets a conflict. */
async function disturbLease({ admin, cluster, driver }: Scene): Promise<void> {
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: driver.driverName.replaceAll(/[^a-zA-Z0-9-]/g, '-'),
      namespace: cluster.sidecarNamespace,
      annotations: { disturbed: String(performance.now()) },
    },
  };
  await admin.objects.patch(lease, undefined, undefined, undefined, undefined, PatchStrategy.MergePatch);
}

async function scrape(url: string): Promise<string> {
  const response = await fetch(url);
  assert.equal(response.status, 200);
  return await response.text();
}

function families(page: string): LiveMetrics {
  return new Map(parseExposition(page).map((family) => [family.name, family]));
}
