import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1Lease } from '@kubernetes/client-node';
import { freePorts } from '../support/control-plane/free-ports.ts';
import { refusedRights } from '../support/refused-rights.ts';
import { openScene, type Scene } from '../support/scene.ts';

describe('a sidecar with leader election', () => {
  let scene: Scene;
  let endpoint: string;
  before(async () => {
    const [port = 0] = await freePorts(1);
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
    const holderIdentity = (await lease()).spec?.holderIdentity;
    await scene.sidecar.stop('SIGKILL');
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    await scene.startSidecar();
    await scene.bound(metadata?.name ?? '');
    assert.equal((await lease()).spec?.holderIdentity, holderIdentity);
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
