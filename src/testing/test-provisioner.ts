import { availableParallelism } from 'node:os';
import { describe, test } from 'node:test';
import { type Settled, StoryBench } from './bench.ts';
import type { ProvisionerStart, TestProvisionerOptions } from './conformance-options.ts';
import { storiesOf } from './stories.ts';

/** What the revocation of storage may take without a word about it, in milliseconds. */
const slowMs = 30_000;

/**
 * Declares a suite of `node:test` that finds out whether a provisioner survives the death of its process. In each test it is a real
 * process against a sandbox of its own; it is killed with SIGKILL at a step of its work, started again, killed there again, and started
 * once more. A test fails with a line for each `leak` (storage in no PersistentVolume), `double` (storage that was made twice, or that two
 * volumes have), `loss` (a volume without its storage or its data) and `open` (a record that is not closed), and with the end of the
 * provisioner's log.
 *
 * @param start - the command of the provisioner, or a function that returns it for the cluster and the folder of a test.
 * @throws {TypeError} for an option that cannot work.
 */
export function testProvisioner(start: readonly string[] | ProvisionerStart, options: TestProvisionerOptions): void {
  const settled = checked(options);
  const starter: ProvisionerStart = typeof start === 'function' ? start : () => start;
  const { provisionerName, concurrency = Math.min(4, availableParallelism()) } = settled;
  let isSaid = false;
  describe(`the provisioner ${provisionerName}`, { concurrency }, () => {
    for (const story of storiesOf(settled)) {
      test(story.title, async (context) => {
        await using bench = await StoryBench.open(starter, settled);
        await story.run(bench);
        if (isSaid || bench.revokedMs < slowMs) return;
        isSaid = true; // of one test: it is the same in all of them
        context.diagnostic(slowText(bench.revokedMs));
      });
    }
  });
}

function slowText(revokedMs: number): string {
  const seconds = Math.round(revokedMs / 1000);
  return (
    `storage that no claim wants was deleted ${seconds} s after the start of the provisioner; if no call of its backend takes so long, ` +
    `the suite takes less time with a lower maxCallMs (docs/testing.md)`
  );
}

function checked(options: TestProvisionerOptions): Settled {
  const { kills = 2, settleMs = 120_000 } = options;
  for (const [name, value, least] of [
    ['kills', kills, 1],
    ['settleMs', settleMs, 1000],
  ] as const) {
    if (!Number.isInteger(value) || value < least) {
      throw new TypeError(`${name} must be a whole number of at least ${least}, not ${value}`);
    }
  }
  for (const name of ['listStorage', 'storageOf'] as const) {
    if (typeof options[name] !== 'function') throw new TypeError(`${name} must be a function`);
  }
  return { ...options, settleMs };
}
