/** A check of `csi-sandbox check` that takes longer than `--check-timeout`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Bench } from '../../../sandbox/check/bench.ts';
import type { Check } from '../../../sandbox/check/check.ts';
import { cleanUp } from '../../../sandbox/check/clean-up.ts';
import { runChecks } from '../../../sandbox/check/runner.ts';
import { benchOptions } from '../../support/broken-drivers/bench-options.ts';
import { BrokenDriver } from '../../support/broken-drivers/broken-driver.ts';

const common = { section: 'a', part: 'driver' } as const;

test('a check that is given up makes no further calls, and has ended before the next one begins', async () => {
  let creates = 0;
  await using driver = await BrokenDriver.start({
    spoils: {
      CreateVolume: async (_, proper) => {
        creates += 1;
        return await proper();
      },
    },
  });
  using bench = await Bench.start(benchOptions(driver.socketPath));
  let hasEnded = false;
  const endless: Check = {
    ...common,
    id: 'endless',
    title: 'it ends',
    run: async () => {
      try {
        for (;;) await bench.create();
      } finally {
        hasEnded = true;
      }
    },
  };
  let createsBefore: number | undefined;
  const next: Check = {
    ...common,
    id: 'next',
    title: 'it is alone',
    run: () => {
      assert.ok(hasEnded, 'the check before still runs');
      createsBefore = creates;
    },
  };
  const signal = AbortSignal.timeout(60_000); // else the endless one goes on for ever where it is not stopped
  const results = await runChecks({ bench, checks: [endless, next], limitMs: 500, signal, report: () => undefined });
  assert.deepEqual(
    results.map(({ id, status }) => [id, status]),
    [
      ['endless', 'fail'],
      ['next', 'pass'],
    ],
  );
  assert.match(results[0]?.findings[0]?.message ?? '', /did not finish within 0\.5 s \(--check-timeout\)/);
  assert.equal(creates, createsBefore);
  assert.deepEqual(await cleanUp(bench), []);
  const listed = await bench.call('ListVolumes');
  assert.deepEqual(listed.ok && (listed.response.entries ?? []), []);
});
