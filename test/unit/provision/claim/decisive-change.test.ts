import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SharedValues } from '../../../../src/kube/cache/shared-values.ts';
import { claimTransform, isPartialClaim } from '../../../../src/provision/cache/cached-claim.ts';
import { isDecisiveChange } from '../../../../src/provision/claim/decisive-change.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../../../src/provision/objects.ts';
import { makeClaim } from '../claims-and-volumes.ts';

const storageClass: StorageClass = { metadata: { name: 'c1' }, provisioner: 'drv' };
const classes = { get: (name: string) => (name === 'c1' ? storageClass : undefined) } as never;
const provisioner = { claimAnnotations: () => ['team'] };

const transform = claimTransform(new SharedValues());

/** The cached form of a claim with these annotations. */
function cached(annotations: Record<string, string>, spec: object = {}): PersistentVolumeClaim {
  return transform(makeClaim({ annotations }, spec));
}

describe('whether a change of a claim may change the result of an attempt', () => {
  const long = 'x'.repeat(9000);
  const node = 'volume.kubernetes.io/selected-node';

  test('an annotation that nothing reads does not, however long it becomes', () => {
    const forms = [cached({}), cached({ notes: 'x' }), cached({ notes: long }), cached({ notes: `${long}y` })];
    assert.deepEqual(forms.map(isPartialClaim), [false, false, true, true]);
    for (const [index, old] of forms.entries()) {
      for (const claim of forms.slice(index)) {
        assert.equal(isDecisiveChange(old, claim, { provisioner, classes }), false);
        assert.equal(isDecisiveChange(claim, old, { provisioner, classes }), false);
      }
    }
  });

  test('the selected node and a volume do, also of a claim that is kept in part', () => {
    for (const notes of ['x', long]) {
      const old = cached({ notes });
      assert.equal(isDecisiveChange(old, cached({ notes, [node]: 'n1' }), { provisioner, classes }), true);
      assert.equal(isDecisiveChange(old, cached({ notes }, { volumeName: 'v' }), { provisioner, classes }), true);
    }
  });

  test('an annotation that its provisioner reads does, and any where it does not say which', () => {
    assert.equal(isDecisiveChange(cached({}), cached({ team: 'red' }), { provisioner, classes }), true);
    assert.equal(isDecisiveChange(cached({}), cached({ notes: 'x' }), { provisioner: {}, classes }), true);
  });
});
