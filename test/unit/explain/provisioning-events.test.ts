import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ClusterEvent } from '../../../src/explain/cluster-objects.ts';
import { deletionHistory, provisioningHistory } from '../../../src/explain/provisioning-events.ts';

const driver = 'd.example.com';
const at = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');

function event(reason: string, fields: Partial<ClusterEvent>): ClusterEvent {
  return { metadata: { name: 'e' }, reason, source: { component: 'd.example.com_pod' }, ...fields };
}

describe('the history of a claim', () => {
  test('has the newest text of failures, and how often all of them came', () => {
    const { failed, lastMs } = provisioningHistory(
      [
        event('ProvisioningFailed', { message: 'new', count: 2, firstTimestamp: at(50), lastTimestamp: at(90) }),
        event('ProvisioningFailed', { message: 'old', count: 3, firstTimestamp: at(10), lastTimestamp: at(40) }),
        event('Provisioning', { message: 'begun', firstTimestamp: at(10), lastTimestamp: at(89) }),
      ],
      driver,
    );
    const component = 'd.example.com_pod';
    assert.deepEqual(failed, { text: 'new', atMs: 90_000, count: 5, sinceMs: 10_000, cause: undefined, component });
    assert.equal(lastMs, 90_000);
  });

  test('reads events that were recorded as series, and those that were combined', () => {
    const { failed } = provisioningHistory(
      [
        event('ProvisioningFailed', {
          message: '(combined from similar events): rpc error',
          eventTime: at(10),
          series: { count: 9, lastObservedTime: at(70) },
        }),
      ],
      driver,
    );
    const component = 'd.example.com_pod';
    assert.deepEqual(failed, {
      text: 'rpc error',
      atMs: 70_000,
      count: 9,
      sinceMs: 10_000,
      cause: undefined,
      component,
    });
  });

  test('is not that of kube-controller-manager, which uses the same reasons', () => {
    const source = { component: 'persistentvolume-controller' };
    const events = [event('ProvisioningFailed', { message: 'no class', source, lastTimestamp: at(5) })];
    assert.deepEqual(provisioningHistory(events, driver).failed, undefined);
    assert.equal(provisioningHistory(events, driver).lastMs, undefined);
  });

  test('is not that of another provisioner, which the class named before it was recreated', () => {
    const ofSource = (component: string): string | undefined =>
      provisioningHistory([event('ProvisioningFailed', { message: 'x', source: { component } })], driver).failed?.text;
    assert.equal(ofSource('other.example.com_pod_6e1f'), undefined);
    assert.equal(ofSource('d.example.com_pod_6e1f'), 'x');
    assert.equal(ofSource('external-provisioner'), 'x');
  });

  test('is that of kube-controller-manager for an in-tree plugin', () => {
    const source = { component: 'persistentvolume-controller' };
    const events = [
      event('ProvisioningFailed', { message: 'no plugin', source, lastTimestamp: at(5) }),
      event('ProvisioningFailed', { message: 'of somebody else', lastTimestamp: at(6) }),
    ];
    assert.equal(provisioningHistory(events, 'kubernetes.io/glusterfs').failed?.text, 'no plugin');
  });

  test('of a deletion has what it waits for, what failed and why it was postponed', () => {
    const history = deletionHistory([
      event('VolumeFailedDelete', { message: 'on fire', lastTimestamp: at(5), firstTimestamp: at(5) }),
      event('VolumeDeletionWaiting', { message: 'shared', lastTimestamp: at(4) }),
      event('VolumeDelete', { message: 'in use', lastTimestamp: at(3) }),
    ]);
    assert.equal(history.failed?.text, 'on fire');
    assert.equal(history.waiting?.text, 'shared');
    assert.equal(history.postponed?.text, 'in use');
  });
});
