import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { finalizerUpkeep, removeFinalizer } from '../../../../src/provision/volume/volume-finalizer.ts';
import { F, makeVolume } from '../claims-and-volumes.ts';

const x = 'kubernetes.io/pv-protection';
const terminating = { deletionTimestamp: '2026-01-01T00:00:00Z' };

/** Every combination of option, policy, phase, being deleted, present. */
describe('finalizerUpkeep', () => {
  for (const on of [true, false]) {
    for (const policy of ['Delete', 'Retain', 'Recycle'] as const) {
      for (const phase of ['Pending', 'Available', 'Bound', 'Released', 'Failed']) {
        for (const deleting of [false, true]) {
          for (const present of [false, true]) {
            const wanted = on && policy === 'Delete' && phase === 'Bound' && !deleting && !present;
            const unwanted = present && (!on || policy !== 'Delete');
            const action = wanted ? 'added' : unwanted ? 'removed' : 'left as it is';
            const state = `${policy}, ${phase}${deleting ? ', being deleted' : ''}`;
            test(`option ${on ? 'on' : 'off'}, ${state}, ${present ? 'present' : 'absent'}: ${action}`, () => {
              const metadata = { finalizers: present ? [F] : [], ...(deleting && terminating) };
              const volume = makeVolume(metadata, { phase, persistentVolumeReclaimPolicy: policy });
              const change = finalizerUpkeep(volume, on);
              const want = { added: [F], removed: [], 'left as it is': undefined }[action];
              assert.deepEqual(change?.finalizers, want);
            });
          }
        }
      }
    }
  }

  test('the patch for a volume without finalizers', () => {
    assert.deepEqual(finalizerUpkeep(makeVolume(), true), {
      finalizers: [F],
      patch: { metadata: { finalizers: [F] } },
    });
  });

  test('the patch for a volume with others', () => {
    assert.deepEqual(finalizerUpkeep(makeVolume({ finalizers: [x, 'y/z'] }), true), {
      finalizers: [x, 'y/z', F],
      patch: { metadata: { '$setElementOrder/finalizers': [x, 'y/z', F], finalizers: [F] } },
    });
  });
});

describe('removeFinalizer', () => {
  test('the patch when others stay', () => {
    assert.deepEqual(removeFinalizer([x, F, 'y/z']), {
      finalizers: [x, 'y/z'],
      patch: {
        metadata: { '$deleteFromPrimitiveList/finalizers': [F], '$setElementOrder/finalizers': [x, 'y/z'] },
      },
    });
  });

  test('the patch when none stays', () => {
    assert.deepEqual(removeFinalizer([F]), { finalizers: [], patch: { metadata: { finalizers: null } } });
  });
});
