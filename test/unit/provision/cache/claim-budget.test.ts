import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { collectGarbage } from '../../../../src/cli/features/start-garbage-feature.ts';
import { silentLogger } from '../../../../src/base/logger.ts';
import { SharedValues } from '../../../../src/kube/cache/shared-values.ts';
import { Store } from '../../../../src/kube/cache/store.ts';
import { claimTransform, isPartialClaim } from '../../../../src/provision/cache/cached-claim.ts';
import { ClaimBudget } from '../../../../src/provision/cache/claim-budget.ts';
import type { PersistentVolumeClaim } from '../../../../src/provision/objects.ts';
import { makeClaim } from '../claims-and-volumes.ts';

function cache(maxChars?: number): {
  budget: ClaimBudget;
  store: Store<PersistentVolumeClaim>;
  form: (claim: PersistentVolumeClaim) => PersistentVolumeClaim;
} {
  const budget = new ClaimBudget(maxChars === undefined ? {} : { maxChars });
  const onChange = (old?: PersistentVolumeClaim, claim?: PersistentVolumeClaim): void => budget.changed(old, claim);
  const store = new Store<PersistentVolumeClaim>({ logger: silentLogger, onChange });
  return { budget, store, form: claimTransform(new SharedValues(), undefined, budget) };
}

const claim = (name: string, namespace: string, notes = ''): PersistentVolumeClaim =>
  makeClaim({ name, namespace, uid: name, annotations: { notes } });

describe('the budget of claims that are kept whole', () => {
  test('is used up by 100,000 small claims, the rest of which are kept in part, and is free again when they are gone', () => {
    const { budget, store, form } = cache();
    const notes = 'x'.repeat(500);
    for (let index = 0; index < 100_000; index++)
      store.set(form(claim(`a${index}`, index % 10 === 0 ? 'small' : 'large', notes)));
    const partial = [...store.list()].filter(isPartialClaim).length;
    assert.equal(store.size, 100_000);
    assert.ok(partial > 50_000 && partial < 90_000, `${partial} are kept in part`);
    assert.ok(budget.storedChars <= 32 * 1024 * 1024 && budget.storedChars > 31 * 1024 * 1024);
    assert.deepEqual(budget.top().map(([namespace]) => namespace), ['large', 'small']); // prettier-ignore
    assert.equal(budget.top().reduce((sum, [, chars]) => sum + chars, 0), budget.storedChars); // prettier-ignore
    for (const key of [...store.keys()]) store.delete(key);
    assert.deepEqual([budget.storedChars, budget.top()], [0, []]);
    assert.equal(isPartialClaim(form(claim('late', 'large', notes))), false);
  });

  test('counts a claim once, whatever happens to it', () => {
    const { budget, store, form } = cache();
    store.set(form(claim('a', 'n', 'x'.repeat(100))));
    const once = budget.storedChars;
    for (let round = 0; round < 3; round++) store.set(form(claim('a', 'n', 'y'.repeat(100))));
    assert.equal(budget.storedChars, once);
    const known = store.get('n/a');
    assert.ok(known !== undefined);
    store.set(known); // a list has it unchanged
    assert.equal(budget.storedChars, once);
    store.set(form(claim('a', 'n', 'x'.repeat(140))));
    assert.equal(budget.storedChars, once + 40);
    store.delete('n/a');
    store.set(known); // again
    assert.equal(budget.storedChars, once);
    store.set(form(makeClaim({ name: 'a', namespace: 'n' }, { volumeName: 'v' })));
    assert.deepEqual([budget.storedChars, budget.top()], [0, []]);
  });

  test('does not grow when a claim leaves the cache and comes back', () => {
    const { store, form } = cache(10_000);
    const known = form(claim('a', 'n', 'x'.repeat(5000)));
    for (let round = 0; round < 5; round++) {
      store.delete('n/a');
      store.set(known);
    }
    assert.equal(isPartialClaim(known), false);
    assert.equal(isPartialClaim(form(claim('b', 'n', 'x'.repeat(5000)))), true, 'there is no room for two');
  });

  test('counts claims that are not in the cache yet, until they are garbage-collected if they are never stored', async () => {
    const { budget, form } = cache(100_000);
    const inPart = (): number =>
      Array.from({ length: 100 }, (_, index) => form(claim(`a${index}`, 'n', 'x'.repeat(1000)))).filter(isPartialClaim)
        .length;
    const first = inPart();
    assert.ok(first > 20 && first < 80, `${first} are kept in part`);
    for (let turn = 0; turn < 20; turn++) {
      collectGarbage();
      await new Promise(setImmediate);
    }
    assert.equal(inPart(), first);
    assert.equal(budget.storedChars, 0);
  });
});
