import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../../src/base/logger.ts';
import { collectGarbage } from '../../../../src/cli/features/start-garbage-feature.ts';
import { SharedValues, Store } from '../../../../src/kube/cache/store.ts';
import {
  ClaimBudget,
  claimTransform,
  isPartialClaim,
  sameClaim,
} from '../../../../src/provision/cache/cached-claim.ts';
import type { PersistentVolumeClaim } from '../../../../src/provision/objects.ts';
import { makeClaim, type Metadata } from '../claims-and-volumes.ts';

const transform = claimTransform(new SharedValues());

function cached(metadata: Metadata & { managedFields?: unknown } = {}, spec = {}, status = {}): PersistentVolumeClaim {
  const claim = makeClaim(metadata, spec);
  return transform({ ...claim, status: { ...claim.status, ...status } } as PersistentVolumeClaim);
}

describe('the cached form of a claim', () => {
  test('an unbound claim is kept whole but for its managed fields, so that it can be sent back', () => {
    const claim = makeClaim({ labels: { a: 'b' }, annotations: { c: 'd' } }, { selector: { matchLabels: {} } });
    const withFields = structuredClone({ ...claim, metadata: { ...claim.metadata, managedFields: [{}] } });
    assert.deepEqual(transform(withFields), claim);
  });

  test('a bound claim keeps what clones, protection and deletion read', () => {
    const dataSource = { kind: 'PersistentVolumeClaim', name: 's' };
    const form = cached(
      { labels: { a: 'b' }, finalizers: ['f'], deletionTimestamp: 't' },
      { volumeName: 'v', dataSource, selector: {} },
      { phase: 'Bound', capacity: { storage: '1Gi' } },
    );
    assert.deepEqual(JSON.parse(JSON.stringify(form)), {
      metadata: {
        name: 'a',
        namespace: 'ns',
        uid: 'u1',
        resourceVersion: '7',
        deletionTimestamp: 't',
        finalizers: ['f'],
      },
      spec: {
        volumeName: 'v',
        storageClassName: 'c1',
        volumeMode: 'Filesystem',
        resources: { requests: { storage: '1Gi' } },
        dataSource,
      },
      status: { phase: 'Bound' },
    });
  });

  test('a large claim without a volume keeps copies of what decides whether it is provisioned', () => {
    const annotations = {
      'volume.kubernetes.io/storage-provisioner': 'csi.example.com',
      'volume.kubernetes.io/selected-node': 'n'.repeat(5000),
      'pv.kubernetes.io/migrated-to': 'csi.example.com',
      notes: 'x'.repeat(5000),
    };
    const creationTimestamp = '2026-01-01T00:00:00Z';
    const dataSource = { kind: 'PersistentVolumeClaim', name: 's' };
    const dataSourceRef = { kind: 'PersistentVolumeClaim', name: 's'.repeat(2000) };
    const form = cached(
      { annotations, creationTimestamp, finalizers: ['f'.repeat(2000)], labels: { a: 'b' } },
      { dataSource, dataSourceRef },
    );
    assert.ok(isPartialClaim(form));
    assert.deepEqual(form.metadata.annotations, {
      'volume.kubernetes.io/storage-provisioner': 'csi.example.com',
      'volume.kubernetes.io/selected-node': 'n'.repeat(1024),
      'pv.kubernetes.io/migrated-to': 'csi.example.com',
    });
    const { metadata, spec } = form;
    assert.deepEqual(
      [metadata.creationTimestamp, metadata.labels, metadata.finalizers],
      [creationTimestamp, undefined, []],
    );
    assert.deepEqual([spec.dataSource, spec.dataSourceRef, spec.storageClassName], [dataSource, undefined, 'c1']);
  });

  test('all keys and values of a claim count for its size, and one of 8,000 characters is kept whole', () => {
    const whole = { annotations: { notes: 'x'.repeat(7000) } };
    assert.deepEqual(cached(whole).metadata.annotations, whole.annotations);
    assert.equal(isPartialClaim(cached(whole)), false);
    for (const metadata of [
      { labels: Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`example.com/label-${index}`, 'x'])) },
      { finalizers: ['x'.repeat(9000)] },
      { annotations: { ['x'.repeat(9000)]: '' } },
    ]) {
      assert.ok(isPartialClaim(cached(metadata)));
    }
    const selector = { matchExpressions: [{ key: 'k', operator: 'In', values: ['x'.repeat(9000)] }] };
    assert.ok(isPartialClaim(cached({}, { selector })));
  });

  test('an empty volume name is no volume', () => {
    assert.deepEqual(cached({ labels: { a: 'b' } }, { volumeName: '' }).metadata.labels, { a: 'b' });
  });
});

describe('whether a change of a claim wakes anybody', () => {
  const bound = { volumeName: 'v' };
  for (const { name, old, now, same } of [
    {
      name: 'an unbound claim: only another version',
      old: cached(),
      now: cached({ resourceVersion: '8' }),
      same: true,
    },
    { name: 'an unbound claim: a label', old: cached(), now: cached({ labels: { a: 'b' } }), same: false },
    { name: 'an unbound claim: a volume', old: cached(), now: cached({}, bound), same: false },
    { name: 'a bound claim: the volume is gone', old: cached({}, bound), now: cached(), same: false },
    {
      name: 'a bound claim: labels and annotations',
      old: cached({}, bound),
      now: cached({ labels: { a: 'b' }, annotations: {}, resourceVersion: '8' }, bound),
      same: true,
    },
    {
      name: 'a bound claim: a finalizer',
      old: cached({ finalizers: ['f'] }, bound),
      now: cached({ finalizers: ['f', 'g'] }, bound),
      same: false,
    },
    {
      name: 'a bound claim: the same finalizers',
      old: cached({ finalizers: ['f'] }, bound),
      now: cached({ finalizers: ['f'], resourceVersion: '8' }, bound),
      same: true,
    },
    {
      name: 'a bound claim: its deletion',
      old: cached({}, bound),
      now: cached({ deletionTimestamp: 't' }, bound),
      same: false,
    },
    {
      name: 'a bound claim: its phase',
      old: cached({}, bound, { phase: 'Pending' }),
      now: cached({}, bound, { phase: 'Bound' }),
      same: false,
    },
    {
      name: 'a bound claim: its size',
      old: cached({}, bound),
      now: cached({}, { ...bound, resources: { requests: { storage: '2Gi' } } }),
      same: false,
    },
  ]) {
    test(name, () => {
      assert.equal(sameClaim(old, now), same);
    });
  }
});

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
