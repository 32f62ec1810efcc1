import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type RequestKind, RequestTurns } from '../../../../src/kube/client/token-bucket.ts';

const lists: RequestKind = { name: 'list', inRow: 1 };
const events: RequestKind = { name: 'events', inRow: 1 };
const volumes: RequestKind = { name: 'volumes', inRow: 3 };

/** Requests `<kind><number>`, which note when they go. */
function scene() {
  const turns = new RequestTurns();
  const gone: string[] = [];
  const added = new Map<string, () => void>();
  const add = (kind: RequestKind, count: number): void => {
    for (let index = 0; index < count; index++) {
      const name = `${kind.name}${index}`;
      const request = (): void => void gone.push(name);
      added.set(name, request);
      turns.add(request, kind);
    }
  };
  const remove = (name: string, kind: RequestKind): void => turns.remove(added.get(name) ?? assert.fail(name), kind);
  const drain = (): string[] => {
    while (turns.size > 0) turns.take()?.();
    return gone;
  };
  return { turns, add, remove, drain };
}

describe('requests that wait', () => {
  test('of one kind are taken in order of arrival', () => {
    const { add, drain } = scene();
    add(lists, 3);
    assert.deepEqual(drain(), ['list0', 'list1', 'list2']);
  });

  test('take turns by kind: one waits for few others, however many of another kind came first', () => {
    const { add, drain } = scene();
    add(events, 350);
    add(lists, 2);
    assert.deepEqual(drain().slice(0, 4), ['events0', 'list0', 'events1', 'list1']);
  });

  test('of a kind with several in a row are taken that often before the next kind', () => {
    const { add, drain } = scene();
    add(volumes, 5);
    add(events, 3);
    assert.deepEqual(drain(), [
      'volumes0',
      'volumes1',
      'volumes2',
      'events0',
      'volumes3',
      'volumes4',
      'events1',
      'events2',
    ]);
  });

  test('gain no earlier turn from a time in which none of their kind waited', () => {
    const { turns, add, drain } = scene();
    add(events, 3);
    add(lists, 1);
    turns.take()?.();
    turns.take()?.(); // list0: its kind is empty
    add(lists, 2);
    assert.deepEqual(drain(), ['events0', 'list0', 'events1', 'list0', 'events2', 'list1']);
  });

  test('are not taken once they are removed, which may be repeated', () => {
    const { turns, add, remove, drain } = scene();
    add(lists, 2);
    add(events, 1);
    remove('list0', lists);
    remove('list0', lists);
    remove('events0', events);
    assert.equal(turns.size, 1);
    assert.deepEqual(drain(), ['list1']);
    assert.equal(turns.take(), undefined);
  });
});
