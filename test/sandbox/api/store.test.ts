import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { type Change, Store } from '../../../sandbox/api/store.ts';

const object = (name: string, value = '') => ({ kind: 'K', apiVersion: 'v1', metadata: { name }, value });
const names = (revisions: readonly { name: string }[] | undefined) => revisions?.map(({ name }) => name);

function newStore({ historyLimit = 100, nowMs = (): number => 0 } = {}): Store {
  const clock = { ...systemClock, monotonicMs: nowMs };
  return new Store({ clock, historyLimit, historyAgeMs: 300_000, firstRv: 1000 });
}

describe('Store', () => {
  test('every commit gets the next resource version, whatever the resource', () => {
    const store = newStore();
    assert.equal(store.put('a', object('x')).rv, 1001);
    assert.equal(store.put('b', object('x')).rv, 1002);
    assert.equal(store.remove('a', object('x')).object.metadata.resourceVersion, '1003');
    assert.equal(store.rv, 1003);
  });

  test('objects come ordered by name however they went in', () => {
    const store = newStore();
    for (const name of ['m', 'z', 'a', 'k']) store.put('a', object(name));
    store.remove('a', object('m'));
    store.put('a', object('b'));
    assert.deepEqual(names(store.list('a')), ['a', 'b', 'k', 'z']);
  });

  test('one namespace is a part of the whole', () => {
    const store = newStore();
    for (const namespace of ['n', 'n-2', 'm']) {
      store.put('a', { ...object('x'), metadata: { name: 'x', namespace } });
    }
    assert.deepEqual(
      store.list('a').map(({ namespace }) => namespace),
      ['m', 'n', 'n-2'],
    );
    assert.deepEqual(
      store.list('a', 'n').map(({ namespace }) => namespace),
      ['n'],
    );
  });

  test('the past can be listed while the history reaches back', () => {
    const store = newStore();
    store.put('a', object('x', '1'));
    store.put('a', object('y'));
    const then = store.rv;
    store.put('a', object('x', '2'));
    store.remove('a', object('y'));
    store.put('a', object('z'));
    const past = store.listAt('a', then);
    assert.deepEqual(names(past), ['x', 'y']);
    assert.equal(past?.[0]?.object['value'], '1');
    assert.deepEqual(names(store.list('a')), ['x', 'z']);
    store.compact(then);
    assert.deepEqual(names(store.listAt('a', then)), ['x', 'y'], 'the compacted version itself is still known');
    store.compact(then + 1);
    assert.equal(store.listAt('a', then), undefined);
  });

  test('changes are known until they fall out of the history', () => {
    const store = newStore({ historyLimit: 3 });
    for (let n = 0; n < 10; n++) store.put(n % 2 === 0 ? 'a' : 'b', object(`x${n}`));
    assert.equal(store.compactedRv, 1007);
    assert.equal(store.changesSince('a', 1006), undefined);
    assert.deepEqual(
      store.changesSince('a', 1007)?.map(({ rv }) => rv),
      [1009],
    );
    assert.deepEqual(store.changesSince('a', store.rv), []);
  });

  test('a long history costs no more than its limit', () => {
    const store = newStore({ historyLimit: 50 });
    for (let n = 0; n < 1000; n++) store.put('a', object('x'));
    assert.equal(store.compactedRv, 1950);
    assert.deepEqual(
      store.changesSince('a', 1950)?.map(({ rv }) => rv),
      Array.from({ length: 50 }, (_, index) => 1951 + index),
    );
  });

  test('changes grow old', () => {
    let nowMs = 0;
    const store = newStore({ nowMs: () => nowMs });
    store.put('a', object('x'));
    nowMs = 299_000;
    store.put('a', object('y'));
    assert.equal(store.changesSince('a', 1000)?.length, 2);
    nowMs = 301_000;
    assert.equal(store.changesSince('a', 1000), undefined);
    assert.equal(store.changesSince('a', 1001)?.length, 1);
  });

  test('listeners hear of their resource in order, with the state before', () => {
    const store = newStore();
    const heard: Change[] = [];
    const subscription = store.onCommit('a', (change) => heard.push(change));
    store.put('a', object('x', '1'));
    store.put('b', object('x'));
    store.put('a', object('x', '2'));
    store.remove('a', object('x'));
    subscription.close();
    store.put('a', object('x'));
    assert.deepEqual(
      heard.map(({ type, previous }) => [type, previous?.object['value']]),
      [
        ['ADDED', undefined],
        ['MODIFIED', '1'],
        ['DELETED', '2'],
      ],
    );
  });

  test('what is stored is frozen, and its text is made once', () => {
    const revision = newStore().put('a', object('x'));
    assert.ok(Object.isFrozen(revision.object.metadata));
    assert.equal(revision.body, '"metadata":{"name":"x","resourceVersion":"1001"},"value":""}');
    assert.equal(revision.body, revision.body);
  });
});
