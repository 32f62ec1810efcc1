import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import {
  type Difference,
  differences,
  intendedAs,
  intendedRows,
  type Results,
  type StepResult,
  tableText,
  unexplained,
} from '../../scripts/try-driver/compare.ts';
import { normalised } from '../../scripts/try-driver/normalise.ts';

const uid = '1e8d6a5c-0b7f-4c3e-9a2d-5f6e7a8b9c0d';

/** A run as the script observes it, with ids of its own. */
function run({ claimUid = uid, handle = 'vol-a', annotations = {}, ...spec }: Record<string, unknown> = {}): Results {
  const names = new Map([
    [claimUid as string, '<uid of c>'],
    [`pvc-${claimUid as string}`, '<volume of c>'],
    [handle as string, '<handle of c>'],
  ]);
  const volume = {
    metadata: {
      name: `pvc-${claimUid as string}`,
      uid: '7d4f1f0e-2c67-4d0c-8b1c-0f6f6b7d1111',
      resourceVersion: '731',
      creationTimestamp: new Date(),
      annotations: { 'pv.kubernetes.io/provisioned-by': 'd.example.com', ...(annotations as object) },
    },
    spec: { csi: { volumeHandle: handle, fsType: 'ext4', ...spec }, claimRef: { uid: claimUid, resourceVersion: '7' } },
  };
  const events = { [`Normal ProvisioningSucceeded: Successfully provisioned volume pvc-${claimUid as string}`]: {} };
  return new Map([['immediate', normalised({ volume, events }, names) as StepResult]]);
}

function only(ours: Results, peer: Results): Difference {
  const found = differences(ours, peer);
  assert.equal(found.length, 1, JSON.stringify(found));
  return found[0]!;
}

describe('two runs', () => {
  test('are the same when only ids, times and versions differ', () => {
    const other = run({ claimUid: '99999999-0b7f-4c3e-9a2d-5f6e7a8b9c0d', handle: 'vol-b' });
    assert.deepEqual(differences(run(), other), []);
  });

  test('differ by a field of the volume', () => {
    const { step, aspect, path, ours, peer } = only(run(), run({ fsType: 'xfs' }));
    assert.deepEqual([step, aspect, path, ours, peer], ['immediate', 'volume', 'spec.csi.fsType', 'ext4', 'xfs']);
  });

  test('differ by an annotation that one of them lacks', () => {
    const found = only(run({ annotations: { more: 'yes' } }), run());
    assert.deepEqual([found.path, found.ours, found.peer], ['metadata.annotations.more', 'yes', undefined]);
  });

  test('differ by the text of an event', () => {
    const peer = run();
    peer.get('immediate')!['events'] = { 'Normal ProvisioningSucceeded: done': {} };
    assert.equal(differences(run(), peer).length, 2);
  });

  test('differ by a volume handle that is not the one of the driver', () => {
    const ours = run();
    const claimUid = '99999999-0b7f-4c3e-9a2d-5f6e7a8b9c0d';
    const names = new Map([[claimUid, '<uid of c>']]);
    const volume = normalised({ spec: { csi: { volumeHandle: 'vol-a-cut' } } }, names) as StepResult;
    const found = differences(
      new Map([['s', { volume }]]),
      new Map([['s', { volume: ours.get('immediate')!['volume'] }]]),
    );
    assert.ok(found.some((each) => each.path === 'spec.csi.volumeHandle'));
  });

  test('differ by a step that one of them did not reach', () => {
    assert.equal(differences(run(), new Map()).length, 2);
  });

  test('differ by the order of topologies in a request', () => {
    const asked = (...zones: string[]): Results => new Map([['s', { requests: [{ preferred: zones }] }]]);
    assert.deepEqual(differences(asked('a', 'b'), asked('a', 'b')), []);
    assert.equal(differences(asked('a', 'b'), asked('b', 'a')).length, 2);
  });
});

describe('what stands for ids', () => {
  const names = new Map([
    ['4', '<handle of c>'],
    ['vm', '<host>'],
    ['pvc-aaaaaaaa', '<volume of c>'],
    ['pvc-aaaaaaaa-more', '<volume of d>'],
  ]);

  test('replaces a short name only where it is the whole text', () => {
    assert.deepEqual(normalised(['4', '14Gi', 'vm', 'vmware'], names), ['<handle of c>', '14Gi', '<host>', 'vmware']);
  });

  test('replaces the longer of two names', () => {
    assert.equal(normalised('made pvc-aaaaaaaa-more', names), 'made <volume of d>');
  });

  test('replaces an id wherever it stands, and the identity of the process', () => {
    assert.equal(normalised(`d.example.com_vm_${uid}`, names), 'd.example.com_vm_<uuid>');
    assert.equal(normalised('1763640000000-1234-d.example.com', names), '<identity>-d.example.com');
    assert.equal(normalised('at 2026-01-02T03:04:05.678Z', names), 'at <time>');
  });

  test('does not depend on the order of keys', () => {
    const [one, other] = [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ].map((each) => JSON.stringify(normalised(each, names)));
    assert.equal(one, other);
  });
});

describe('a difference that is meant', () => {
  const difference = { step: 's', aspect: 'a', path: '', ours: undefined, peer: undefined };

  test('is a Lease of the journal, not any further Lease', () => {
    const lease = { ...difference, aspect: 'leases', ours: {} };
    assert.equal(intendedAs({ ...lease, path: 'd-example-com-journal-0' })?.row, 12);
    assert.equal(intendedAs({ ...lease, path: 'd-example-com' }), undefined);
  });

  test('is fewer calls than the other sidecar makes, not more and not none', () => {
    const counts = { ...difference, aspect: 'counts', path: 'DeleteVolume' };
    assert.equal(intendedAs({ ...counts, ours: 1, peer: 2 })?.row, 4);
    assert.equal(intendedAs({ ...counts, ours: 2, peer: 1 }), undefined);
    assert.equal(intendedAs({ ...counts, peer: 1 }), undefined);
  });

  test('is storage that ours deletes after a crash, not storage that it leaves', () => {
    const storage = { ...difference, step: 'killed, claim deleted', aspect: 'storage' };
    assert.equal(intendedAs({ ...storage, ours: 'deleted', peer: 'left behind' })?.row, 12);
    assert.equal(intendedAs({ ...storage, ours: 'left behind', peer: 'deleted' }), undefined);
  });

  test('is the clean end, not an exit code of ours', () => {
    const ending = { ...difference, step: 'stopped', aspect: 'ending', peer: 'signal SIGTERM' };
    assert.equal(intendedAs({ ...ending, ours: 'exit code 0' })?.row, 2);
    assert.equal(intendedAs({ ...ending, ours: 'exit code 1' }), undefined);
  });

  test('has a row on the migration page', () => {
    const page = readFileSync(path.join(import.meta.dirname, '../../docs/differences.md'), 'utf8');
    for (const row of intendedRows()) assert.match(page, new RegExp(`^\\| X${row} +\\|`, 'm'));
  });
});

describe('the table of a comparison', () => {
  test('marks what is not meant, and counts it', () => {
    const [ours, peer] = [run(), run({ fsType: 'xfs' })];
    const found = differences(ours, peer);
    const text = tableText(ours, peer, found);
    assert.match(text, /^immediate +events same, volume DIFFERS$/m);
    assert.match(text, /^ {4}! volume spec\.csi\.fsType: ours "ext4", peer "xfs"$/m);
    assert.equal(unexplained(found).length, 1);
  });

  test('shows a step that only the other sidecar has reached', () => {
    const text = tableText(new Map(), run(), differences(new Map(), run()));
    assert.match(text, /^immediate +events DIFFERS, volume DIFFERS$/m);
  });
});
