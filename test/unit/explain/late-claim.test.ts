/** Claims of late-binding classes are often old when their provisioning begins. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ClaimFacts } from '../../../src/explain/claim-facts-reader.ts';
import type { KubeObject } from '../../../src/kube/kube-object.ts';
import { claimExplanation } from '../../../src/explain/explain-claim.ts';

const nowMs = Date.parse('2026-03-01T12:00:00Z');
const driver = 'd.example.com';
const here = <T>(value: T): { kind: 'found'; value: T } => ({ kind: 'found', value });

/** A claim of three hours ago, whose node was chosen this long ago. */
function chosen(msAgo: number, annotations: Record<string, string> = {}): ClaimFacts {
  const object: KubeObject = { metadata: { name: driver } };
  return {
    nowMs,
    claim: {
      metadata: {
        namespace: 'ns1',
        name: 'c',
        creationTimestamp: '2026-03-01T09:00:00Z',
        annotations: { 'volume.kubernetes.io/selected-node': 'n1', ...annotations },
        managedFields: [{ manager: 'kube-scheduler', time: new Date(nowMs - msAgo).toISOString() }],
      },
      spec: { storageClassName: 'sc', accessModes: ['ReadWriteOnce'] },
      status: { phase: 'Pending' },
    },
    storageClass: here({
      metadata: { name: 'sc' },
      provisioner: driver,
      volumeBindingMode: 'WaitForFirstConsumer' as const,
    }),
    node: here(object),
    provisioner: { name: driver, driver: here(object), leases: here([]) },
    events: here([]),
  };
}

describe('why of an old claim whose node was chosen just now', () => {
  const handedOver = { 'volume.kubernetes.io/storage-provisioner': driver };

  test('gives kube-controller-manager its time', () => {
    const { verdict, cause } = claimExplanation(chosen(2000));
    assert.deepEqual({ verdict, cause }, { verdict: 'waiting', cause: 'not-handed-over' });
    assert.equal(claimExplanation(chosen(5 * 60_000)).verdict, 'stuck');
  });

  test('gives a provisioner without a Lease its time', () => {
    const { verdict, cause } = claimExplanation(chosen(2000, handedOver));
    assert.deepEqual({ verdict, cause }, { verdict: 'waiting', cause: 'in-progress' });
    assert.equal(claimExplanation(chosen(10 * 60_000, handedOver)).cause, 'no-leader');
  });
});

describe('why of a claim on which nothing has ended', () => {
  const handedOver = { 'volume.kubernetes.io/storage-provisioner': driver };
  const renewed = new Date(nowMs).toISOString();
  const leases = here([
    { metadata: { name: 'd', namespace: 'driver' }, spec: { holderIdentity: 'pod-1', renewTime: renewed } },
  ]);
  const led = (msAgo: number, facts: Partial<ClaimFacts> = {}): ClaimFacts => ({
    ...chosen(msAgo, handedOver),
    provisioner: { name: driver, driver: here({ metadata: { name: driver } }), leases },
    ...facts,
  });

  test('waits for a provisioner that has other claims first, for a quarter of an hour', () => {
    assert.equal(claimExplanation(led(10 * 60_000)).verdict, 'waiting');
    const { verdict, cure } = claimExplanation(led(20 * 60_000));
    assert.equal(verdict, 'stuck');
    assert.match(cure, /log of the provisioner, pod-1 in namespace driver/);
  });

  test('waits for a call of the driver, until no call takes as long', () => {
    const begun = (msAgo: number): ClaimFacts => {
      const time = new Date(nowMs - msAgo).toISOString();
      const event = {
        metadata: { name: 'e' },
        reason: 'Provisioning',
        source: { component: `${driver}_pod-1` },
        firstTimestamp: time,
        lastTimestamp: time,
      };
      return led(msAgo, { events: here([event]), driverPod: { host: 'pod-1' } });
    };
    assert.equal(claimExplanation(begun(20 * 60_000)).verdict, 'waiting');
    const { verdict, cause, cure } = claimExplanation(begun(40 * 60_000));
    assert.deepEqual({ verdict, cause }, { verdict: 'stuck', cause: 'in-progress' });
    assert.match(cure, /hangs.* See the log of the driver's container in Pod pod-1/);
  });
});
