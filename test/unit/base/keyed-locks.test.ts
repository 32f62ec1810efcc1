import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KeyedLocks } from '../../../src/base/keyed-locks.ts';

describe('KeyedLocks', () => {
  test('runs sections of one key one after the other, in the order of the calls', async () => {
    const locks = new KeyedLocks();
    const seen: string[] = [];
    const section = (name: string) => async () => {
      seen.push(`${name} begins`);
      await Promise.resolve();
      seen.push(`${name} ends`);
      return name;
    };
    const results = await Promise.all(['a', 'b', 'c'].map((name) => locks.run('key', section(name))));
    assert.deepEqual(results, ['a', 'b', 'c']);
    assert.deepEqual(
      seen,
      ['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]),
    );
  });

  test('runs sections of different keys side by side', async () => {
    const locks = new KeyedLocks();
    const first = Promise.withResolvers<undefined>();
    const one = locks.run('one', () => first.promise);
    await locks.run('two', () => first.resolve(undefined)); // would never end if it waited for the other
    await one;
  });

  test('lets the next section run after one that failed', async () => {
    const locks = new KeyedLocks();
    const failing = locks.run('key', () => Promise.reject(new Error('no room')));
    const next = locks.run('key', () => 'done');
    await assert.rejects(failing, /no room/);
    assert.equal(await next, 'done');
  });

  test('keeps the order when a caller stops waiting', async () => {
    const locks = new KeyedLocks();
    const first = Promise.withResolvers<undefined>();
    const giveUp = new AbortController();
    let running = true;
    const one = locks.run('key', async () => {
      await first.promise;
      running = false;
    });
    const two = locks.run('key', () => assert.fail('its caller has given up'), { signal: giveUp.signal });
    const three = locks.run('key', () => running);
    giveUp.abort(new Error('too late'));
    await assert.rejects(two, /too late/);
    first.resolve(undefined);
    assert.equal(await three, false);
    await one;
  });

  test('does not begin a section whose signal is aborted', async () => {
    const locks = new KeyedLocks();
    const signal = AbortSignal.abort(new Error('stopped'));
    await assert.rejects(
      locks.run('key', () => assert.fail('begun'), { signal }),
      /stopped/,
    );
    assert.equal(locks.size, 0);
  });

  test('forgets keys that nobody uses', async () => {
    const locks = new KeyedLocks();
    await Promise.all(Array.from({ length: 100 }, (_, key) => locks.run(String(key), () => key)));
    await Promise.resolve();
    assert.equal(locks.size, 0);
  });
});
