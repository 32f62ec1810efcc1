import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseCommandLine } from '../../../../src/cli/command-line.ts';
import { journalObjects, type JournalObjects } from '../../../../src/cli/features/journal-features.ts';

function objectsOf(args: readonly string[], environment = {}, driverName = 'hostpath.csi.k8s.io') {
  const parsed = parseCommandLine({ argv0: 'x', args, environment, version: 'v0' });
  assert.equal(parsed.kind, 'run');
  return journalObjects({ config: parsed.config, driver: { name: driverName } });
}

function lock(objects: JournalObjects | undefined): string {
  return `${objects?.namespace ?? ''}/${objects?.lockName ?? ''}`;
}

describe('the journal of a sidecar', () => {
  test('lies beside the lease of the leader election, also without it', () => {
    const environment = { POD_NAMESPACE: 'storage' };
    for (const args of [[], ['--leader-election']]) {
      assert.equal(lock(objectsOf(args, environment)), 'storage/hostpath-csi-k8s-io');
    }
    assert.equal(lock(objectsOf(['--leader-election-namespace=a'], environment)), 'a/hostpath-csi-k8s-io');
    assert.equal(lock(objectsOf([])), 'default/hostpath-csi-k8s-io', 'outside of a Pod');
  });

  test('is in lower case, as the lease is', () => {
    assert.equal(lock(objectsOf([], {}, 'Driver_')), 'default/driver-x');
  });

  test('is one of its own on each node', () => {
    const objects = objectsOf(['--node-deployment'], { NODE_NAME: 'n1' });
    assert.equal(lock(objects), 'default/hostpath-csi-k8s-io.n1');
    assert.equal(objects?.lease, 'hostpath-csi-k8s-io');
  });

  test('is not there when it is off', () => {
    assert.equal(objectsOf(['--intent-journal=off']), undefined);
  });
});
