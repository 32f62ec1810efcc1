import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../../src/base/logger.ts';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';
import { StorageHolders, type StorageIndex } from '../../../../src/provision/volume/storage-holders.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { Rig } from '../rig.ts';

/** Handles of which the letter case does not count. */
const storage = {
  storageKeys: ({ spec }: PersistentVolume): string[] => (spec.csi === undefined ? [] : [spec.csi.volumeHandle]),
  handleKey: (handle: string): string => handle.toLowerCase(),
};

/** A server with the volumes `v1` (handle `h1`) and `v2` (handle `h2`), and what asks it. */
async function scene(index?: Pick<StorageIndex, 'find'>) {
  const rig = await Rig.prepare();
  const clock = new ManualClock();
  const abort = new AbortController();
  for (const number of [1, 2]) {
    rig.addVolume(`v${number}`, 'Bound', { spec: { csi: { driver: 'any', volumeHandle: `h${number}` } } });
  }
  const holders = new StorageHolders({
    transport: rig.transport,
    storage,
    index,
    abort: abort.signal,
    clock,
    logger: silentLogger,
  });
  const find = async (name: string, handle: string, signal = abort.signal): Promise<string | undefined> =>
    (await holders.find({ name, handle }, signal))?.metadata.name;
  const lists = (): number => rig.wire.requests.length;
  return { rig, clock, abort, find, lists };
}

describe('who holds a storage', () => {
  for (const { title, name, handle, want } of [
    { title: 'a volume with the handle', name: 'x', handle: 'h2', want: 'v2' },
    { title: 'a volume with the name', name: 'v1', handle: 'x', want: 'v1' },
    { title: 'the one with the handle, where another has the name', name: 'v1', handle: 'h2', want: 'v2' },
    { title: 'the one with the handle, also when it comes first', name: 'v2', handle: 'h1', want: 'v1' },
    { title: 'a volume with the handle in another case', name: 'x', handle: 'H2', want: 'v2' },
    { title: 'nobody', name: 'x', handle: 'x', want: undefined },
  ]) {
    test(title, async () => {
      const { rig, find } = await scene();
      await using _rig = rig;
      assert.equal(await find(name, handle), want);
    });
  }

  test('is a volume that the index has and the list had not yet', async () => {
    const asked: (readonly string[])[] = [];
    const imported: PersistentVolume = { metadata: { name: 'imported' }, spec: {} };
    const { rig, clock, find } = await scene({
      find: (keys) => {
        asked.push(keys);
        return Promise.resolve(keys.includes('h3') ? imported : undefined);
      },
    });
    await using _rig = rig;
    assert.equal(await find('x', 'H3'), 'imported');
    await clock.advance(0);
    assert.equal(await find('v1', 'h4'), 'v1');
    await clock.advance(0);
    assert.equal(await find('x', 'h2'), 'v2');
    assert.deepEqual(asked, [['h3'], ['h4']], 'what the list had is not asked for');
  });

  test('is found on a later page', async () => {
    const { rig, find, lists } = await scene();
    await using _rig = rig;
    for (let number = 0; number < 500; number++) rig.addVolume(`a${number}`, 'Bound');
    assert.equal(await find('x', 'h2'), 'v2');
    assert.equal(lists(), 2);
  });

  test('is asked in one list for all that ask while another is under way', async () => {
    const { rig, clock, find, lists } = await scene();
    await using _rig = rig;
    const first = find('x', 'h1');
    const others = [find('x', 'h2'), find('v1', 'x'), find('x', 'x')];
    assert.equal(await first, 'v1');
    await clock.advance(0);
    assert.deepEqual(await Promise.all(others), ['v2', 'v1', undefined]);
    assert.equal(lists(), 2);
  });

  test('is answered by one list to any number of questions, of which many may be the same', async () => {
    const { rig, clock, find, lists } = await scene();
    await using _rig = rig;
    const first = find('x', 'h1');
    const others = Array.from({ length: 1000 }, (_, number) => find(`x${number}`, `h${number % 4}`));
    await first;
    await clock.advance(0);
    const found = await Promise.all(others);
    assert.deepEqual(found.slice(0, 5), [undefined, 'v1', 'v2', undefined, undefined]);
    assert.equal(found.filter((name) => name !== undefined).length, 500);
    assert.equal(lists(), 2);
  });

  test('is not known when the volumes cannot be listed, and is asked again by the next', async () => {
    const { rig, clock, find } = await scene();
    await using _rig = rig;
    rig.refuse('list', 'persistentvolumes', { times: 1 });
    await assert.rejects(find('x', 'h1'), /boom/);
    await clock.advance(0);
    assert.equal(await find('x', 'h1'), 'v1');
  });

  test('is not waited for once the caller gives up, nor once everything ends', async () => {
    const { rig, abort, find } = await scene();
    await using _rig = rig;
    rig.fault({ match: { verb: 'list', resource: 'persistentvolumes' }, action: { type: 'delay', ms: 10_000 } });
    const caller = new AbortController();
    const [one, other] = [find('x', 'h1', caller.signal), find('x', 'h1')];
    caller.abort(new Error('given up'));
    await assert.rejects(one, /given up/);
    abort.abort(new Error('the end'));
    await assert.rejects(other, /the end/);
  });

  test('is asked again after nine times the time that the last list took', async () => {
    const { rig, clock, find, lists } = await scene();
    await using _rig = rig;
    const slow = rig.fault({
      match: { verb: 'list', resource: 'persistentvolumes' },
      action: { type: 'delay', ms: 1000 },
    });
    const first = find('x', 'h1');
    await rig.until('the list', () => slow.hits === 1);
    await clock.advance(500);
    const second = find('x', 'h2');
    await first;
    slow.remove();
    await clock.advance(4499);
    assert.equal(lists(), 1);
    await clock.advance(1);
    assert.equal(await second, 'v2');
  });
});
