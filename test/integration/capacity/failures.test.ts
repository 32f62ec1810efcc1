/** A driver or an API server that fails or is slow. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { DriverFailure } from '../../support/fakes/recording-driver.ts';
import { Gi, Rig, zone } from './rig.ts';

const base = (rig: Rig): void => rig.base();
const failing = (rig: Rig): string[] =>
  rig.warnings().map(({ fields }) => ((fields as { err?: Error }).err ?? new Error('no error')).message);

describe('a driver that fails', () => {
  test('is asked again after 1, 2 and 4 seconds', async () => {
    const internal = new DriverFailure(status.INTERNAL, 'broken');
    await using rig = await Rig.start({
      prepare: (it) => {
        it.base();
        it.driver.next('GetCapacity', internal, internal, internal);
      },
    });
    const pauses: number[] = [];
    for (let calls = 2; calls <= 4; calls++) {
      const startMs = rig.clock.monotonicMs();
      while (rig.calls.length < calls) {
        await rig.clock.advance(1000);
        await rig.quiet();
      }
      pauses.push(rig.clock.monotonicMs() - startMs);
    }
    assert.deepEqual(pauses, [1000, 2000, 4000]);
    assert.equal(rig.only.capacity, '1Gi');
    assert.equal(failing(rig)[0], `CSI GetCapacity for sc {"${zone}":"z1"}: rpc error: code = Internal desc = broken`);
    assert.equal(failing(rig).length, 3);
  });

  test('keeps its object, and is asked less and less often', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.base();
        it.addCapacity();
        it.driver.always('GetCapacity', new DriverFailure(status.UNIMPLEMENTED, 'no'));
      },
    });
    for (let second = 1; second <= 31; second++) {
      await rig.clock.advance(1000);
      await rig.quiet();
    }
    assert.equal(rig.calls.length, 6, 'at 0, 1, 3, 7, 15 and 31 seconds');
    assert.equal(rig.only.capacity, '1Gi');
    assert.deepEqual(rig.writes, []);
  });

  const negative: [string, object][] = [
    ['available_capacity', { available_capacity: -1 }],
    ['maximum_volume_size', { available_capacity: Gi, maximum_volume_size: { value: -5 } }],
  ];
  for (const [field, answer] of negative) {
    test(`a negative ${field} is the driver's mistake and never sent`, async () => {
      await using rig = await Rig.start({
        prepare: (it) => {
          it.base();
          it.driver.next('GetCapacity', answer);
        },
      });
      assert.deepEqual(rig.writes, []);
      assert.match(failing(rig).join(), new RegExp(`the driver returned a negative ${field}: -\\d`));
      await rig.clock.advance(1000);
      await rig.until('the object', () => rig.stored.length === 1);
      assert.equal(rig.calls.length, 2);
    });
  }

  test('that hangs is given up at the deadline; other items wait behind it', async () => {
    await using rig = await Rig.start({ timeoutMs: 1000 });
    const never = new Promise<object>(() => undefined);
    rig.driver.next('GetCapacity', () => never);
    rig.addClass('sc2');
    rig.base();
    await rig.driver.called('GetCapacity', 1);
    const [hanging] = rig.calls;
    assert.ok(hanging);
    if (!hanging.cancelled.aborted)
      await new Promise((resolve) => hanging.cancelled.addEventListener('abort', resolve, { once: true }));
    assert.equal(rig.calls.length, 1, 'nothing else was asked meanwhile');
    await rig.until('the other item', () => rig.stored.length === 1);
    await rig.quiet();
    assert.match(failing(rig).join(), /code = DeadlineExceeded desc = context deadline exceeded/);
    await rig.clock.advance(1000);
    await rig.until('both objects', () => rig.stored.length === 2);
  });
});

test('what a driver says of a class that was recreated meanwhile is not published for the new one', async () => {
  await using rig = await Rig.start({ prepare: (it) => it.base() });
  const held = Promise.withResolvers<object>();
  rig.driver.always('GetCapacity', ({ request }) =>
    (request['parameters'] as { pool?: string } | null)?.pool === undefined
      ? held.promise
      : Promise.reject(new DriverFailure(status.INVALID_ARGUMENT, 'no such pool')),
  );
  rig.forget();
  rig.controller.refreshAll();
  await rig.until('the question', () => rig.calls.length === 1);
  rig.removeClass();
  rig.addClass('sc', { parameters: { pool: 'x' } });
  await rig.until('the new class', () => rig.cachedClass()?.parameters?.['pool'] === 'x');
  held.resolve({ available_capacity: 5 * Gi });
  await rig.until('the question about the new class', () => rig.calls.length === 2);
  await rig.quiet();
  assert.deepEqual(rig.seen, []);
});

describe('an API server that fails', () => {
  test('a create that failed is tried again after a second, with a new question', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.base();
        it.server.faults.add({
          match: { verb: 'create', resource: 'csistoragecapacities' },
          action: { type: 'status', code: 500, reason: 'InternalError', message: 'boom' },
          times: 1,
        });
      },
    });
    assert.deepEqual(rig.seen, []);
    assert.equal(failing(rig).join(), `create CSIStorageCapacity for sc {"${zone}":"z1"}: boom`);
    rig.driver.always('GetCapacity', { available_capacity: 2 * Gi });
    await rig.clock.advance(1000);
    await rig.until('the object', () => rig.stored.length === 1);
    assert.equal(rig.calls.length, 2);
    assert.equal(rig.only.capacity, '2Gi');
  });

  test('an update that met another is tried again', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.base();
        it.addCapacity({ capacity: '5Gi' });
        it.server.faults.add({
          match: { verb: 'update', resource: 'csistoragecapacities' },
          action: { type: 'status', code: 409, reason: 'Conflict', message: 'boom' },
          times: 1,
        });
      },
    });
    assert.equal(rig.only.capacity, '5Gi');
    assert.equal(failing(rig).join(), `update CSIStorageCapacity for sc {"${zone}":"z1"}: boom`);
    await rig.clock.advance(1000);
    await rig.until('the right amount', () => rig.only.capacity === '1Gi');
  });

  test('a create whose answer was lost leaves one object in the end', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.base();
        it.server.faults.add({
          match: { verb: 'create', resource: 'csistoragecapacities' },
          action: { type: 'dropAfter' },
          times: 1,
        });
      },
    });
    await rig.clock.advance(1000);
    await rig.quiet();
    assert.equal(rig.stored.length, 1);
    assert.equal(await rig.counts(), '1/1/0');
  });
});

test('at one request per second writes go out one after the other', async () => {
  await using rig = await Rig.start({ rateLimit: { qps: 1, burst: 5 } });
  rig.addZone();
  const created = (): number => rig.writes.filter(({ verb }) => verb === 'create').length;
  for (let n = 1; n <= 20; n++) rig.addClass(`sc-${n}`);
  await rig.until('the first five', () => created() === 5 && rig.calls.length === 6);
  await rig.clock.settle();
  assert.equal(created(), 5);
  for (let n = 6; n <= 20; n++) {
    await rig.clock.advance(999);
    assert.equal(created(), n - 1);
    await rig.clock.advance(1);
    await rig.until(`the ${n}th`, () => created() === n);
    if (n < 20) await rig.until('the next question', () => rig.calls.length === n + 1);
    await rig.clock.settle();
  }
});

test('the end drops a question under way, and nothing has failed', async () => {
  await using rig = await Rig.start();
  rig.driver.always('GetCapacity', () => new Promise<object>(() => undefined));
  rig.base();
  await rig.driver.called('GetCapacity');
  await rig.stop();
  assert.deepEqual(rig.warnings(), []);
  assert.deepEqual(rig.writes, []);
});

test('a driver that comes to rest asks for nothing: no interval, no question', async () => {
  await using rig = await Rig.start({ prepare: base, pollIntervalMs: 0 });
  await rig.clock.advance(24 * 3_600_000);
  assert.equal(rig.calls.length, 1);
});
