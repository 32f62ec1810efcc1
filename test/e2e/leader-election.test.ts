import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1Lease } from '@kubernetes/client-node';
import { freePort } from '../support/free-ports.ts';
import { refusedRights } from '../support/refused-rights.ts';
import { openScene, type Scene } from '../support/scene.ts';

describe('a sidecar with leader election', () => {
  let scene: Scene;
  let endpoint: string;
  before(async () => {
    const port = await freePort();
    endpoint = `127.0.0.1:${port}`;
    scene = await openScene({
      rbac: ['components/leader-election/rbac.yaml'],
      sidecarFlags: [
        `--http-endpoint=${endpoint}`,
        '--leader-election',
        '--leader-election-lease-duration=30s',
        '--leader-election-renew-deadline=20s',
        '--leader-election-retry-period=500ms',
      ],
    });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  const lease = async (): Promise<V1Lease> => {
    const name = scene.driver.driverName.replaceAll(/[^a-zA-Z0-9-]/g, '-');
    const namespace = scene.cluster.sidecarNamespace;
    return await scene.admin.coordination.readNamespacedLease({ name, namespace });
  };

  test('works once it holds the lease named after its driver', async () => {
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    await scene.bound(metadata?.name ?? '');
    const { spec } = await lease();
    assert.ok(spec?.holderIdentity);
    assert.equal(spec.leaseDurationSeconds, 30);
    assert.equal(spec.leaseTransitions, 0);
  });

  test('is healthy to the probe that deploy/ sets up', async () => {
    const response = await fetch(`http://${endpoint}/healthz/leader-election`);
    assert.equal(response.status, 200, await response.text());
  });

  test('goes on after a crash, for the same host holds the lease', async () => {
    const before = (await lease()).spec;
    await scene.sidecar.stop('SIGKILL');
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    await scene.startSidecar();
    await scene.bound(metadata?.name ?? '');
    const { spec } = await lease();
    assert.equal(spec?.holderIdentity, before?.holderIdentity);
    assert.equal(spec?.leaseTransitions, before?.leaseTransitions, 'nothing was waited for');
    assert.doesNotMatch(scene.sidecar.log(), /waiting until it has ended/);
  });

  test('leaves the lease to another process of its host that lives, and works once that has ended', async () => {
    const holds = async (): Promise<string> => {
      const { metadata, spec } = await lease();
      const { process } = JSON.parse(metadata?.annotations?.['csi-provisioner/holder'] ?? '{}') as { process?: string };
      return `${spec?.holderIdentity} ${process}`;
    };
    const className = await scene.createClass();
    const leader = scene.sidecar;
    const before = await holds();
    const standby = await scene.startSidecar(['--http-endpoint=']);
    await scene.eventually(() => assert.match(standby.log(), /same identity, waiting as a standby/));
    for (let claims = 0; claims < 3; claims++) {
      const { metadata } = await scene.createClaim({ className });
      await scene.bound(metadata?.name ?? '');
    }
    assert.deepEqual([leader.running(), standby.running()], [true, true], 'neither stops the other');
    assert.equal(await holds(), before);
    assert.doesNotMatch(standby.log(), /Started provisioner controller/);
    const { items } = await scene.admin.core.listNamespacedEvent({ namespace: scene.cluster.sidecarNamespace });
    const about = items.filter(({ reason }) => reason === 'LeaderElectionWaiting');
    assert.ok(about.some(({ type, involvedObject }) => type === 'Warning' && involvedObject.kind === 'Lease'));
    await leader.stop('SIGKILL');
    const { metadata } = await scene.createClaim({ className });
    await scene.bound(metadata?.name ?? '');
    assert.doesNotMatch(leader.log() + standby.log(), /written by another process/);
  });

  test('lets go of the lease when it is stopped', async () => {
    await scene.sidecar.stop('SIGTERM');
    assert.equal((await lease()).spec?.holderIdentity ?? '', '');
  });

  test('was never refused a right by the API server', () => {
    assert.match(scene.sidecar.log(), /lease/i);
    assert.deepEqual(refusedRights(scene.sidecar.log()), []);
  });
});
