/** A run of `csi-sandbox check` that is interrupted, or whose driver is gone, amid its calls. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chosen } from '../../../sandbox/check/catalogue.ts';
import { checkDriver } from '../../../sandbox/check/check-driver.ts';
import { CsiClient } from '../../../sandbox/check/csi-client.ts';
import { benchOptions } from '../../support/broken-drivers/bench-options.ts';
import { BrokenDriver } from '../../support/broken-drivers/broken-driver.ts';

/** Some check makes one volume, and `list-pages` makes further ones. */
const interruptedCall = 4;

test('a check that is interrupted makes no further volumes, and those that there are go', async () => {
  const interrupt = new AbortController();
  let calls = 0;
  await using driver = await BrokenDriver.start({
    spoils: {
      CreateVolume: async (_, proper) => {
        if (++calls === interruptedCall) interrupt.abort('SIGINT');
        return await proper();
      },
    },
  });
  const results = await checkDriver({
    bench: benchOptions(driver.socketPath),
    checks: chosen(['list-pages']),
    limitMs: 120_000,
    waitMs: 10_000,
    signal: interrupt.signal,
    report: () => undefined,
  });
  assert.ok(!results.some(({ id }) => id === 'list-pages'));
  assert.equal(calls, interruptedCall);
  using client = new CsiClient({ socketPath: driver.socketPath, timeoutMs: 20_000 });
  const listed = await client.call('ListVolumes');
  assert.deepEqual(listed.ok && (listed.response.entries ?? []), []);
});

test('a driver that is gone before its claims are checked ends the run, with the reason', async () => {
  await using driver = await BrokenDriver.start({ spoils: {} });
  let ended: Promise<void> | undefined;
  const results = await checkDriver({
    bench: { ...benchOptions(driver.socketPath), timeoutMs: 2000 },
    checks: chosen(['claim']),
    limitMs: 120_000,
    waitMs: 300,
    signal: new AbortController().signal,
    report: ({ id }) => {
      if (id === 'delete') ended = driver[Symbol.asyncDispose]();
    },
  });
  await ended;
  const { status, findings = [] } = results.find(({ id }) => id === 'claim') ?? {};
  assert.equal(status, 'fail');
  assert.match(findings[0]?.message ?? '', /no CSI driver was ready at .* within 0\.3 s|cannot be registered/);
});
