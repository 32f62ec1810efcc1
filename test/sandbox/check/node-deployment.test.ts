/** `csi-sandbox check` on drivers with a process on each node, most of them broken on purpose: each mistake is named. */
import assert from 'node:assert/strict';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { chosen } from '../../../sandbox/check/catalogue.ts';
import { checkDriver } from '../../../sandbox/check/check-driver.ts';
import type { CheckResult } from '../../../sandbox/check/check.ts';
import { benchOptions } from '../../support/broken-drivers/bench-options.ts';
import { BrokenDriver } from '../../support/broken-drivers/broken-driver.ts';
import { type NodeDefect, nodeDefects } from '../../support/broken-drivers/node-defects.ts';
import { programFile } from '../../support/program-file.ts';

const checks = ['node-delete', 'node-volume-id'];

type Options = Partial<Pick<NodeDefect, 'spoils' | 'flags' | 'only'>> & { leftBehind?: (text: string) => void };

async function checked({ spoils, flags = [], only = checks, leftBehind }: Options): Promise<CheckResult[]> {
  await using folder = await mkdtempDisposable(path.join(tmpdir(), 'first-'));
  const place = { node: 'node-1', socketPath: path.join(folder.path, 'csi.sock') };
  await using driver = await BrokenDriver.start({ spoils: {}, flags, place });
  const spoilsOf = spoils?.() ?? (() => ({}));
  return await checkDriver({
    bench: benchOptions(driver.socketPath),
    checks: chosen(only),
    limitMs: 120_000,
    waitMs: 10_000,
    sidecarProgram: [programFile('csi-provisioner')],
    startNodeDriver: (place) => BrokenDriver.start({ spoils: spoilsOf(place.node), flags, place }),
    signal: new AbortController().signal,
    report: () => undefined,
    ...(leftBehind && { leftBehind }),
  });
}

function described(results: readonly CheckResult[]): string {
  return results
    .map(({ id, status, findings, notes }) => `${status} ${id} ${JSON.stringify([...findings, ...notes])}`)
    .join('\n');
}

describe('a driver on each node', { concurrency: 2 }, () => {
  test('without a mistake passes every check, and leaves nothing behind', async () => {
    const left: string[] = [];
    const results = await checked({ leftBehind: (text) => left.push(text) });
    assert.deepEqual([...new Set(results.map(({ status }) => status))], ['pass'], described(results));
    assert.deepEqual(left, []);
  });

  test('without topology is skipped, with the reason', async () => {
    const results = await checked({ flags: ['--capabilities-off=VOLUME_ACCESSIBILITY_CONSTRAINTS'] });
    assert.deepEqual([...new Set(results.map(({ status }) => status))], ['skip'], described(results));
    assert.match(described(results), /the driver has no VOLUME_ACCESSIBILITY_CONSTRAINTS: nothing says which node/);
  });

  test('that does not start fails, with its last words', async () => {
    await using driver = await BrokenDriver.start({ spoils: {} });
    const results = await checkDriver({
      bench: benchOptions(driver.socketPath),
      checks: chosen(['node-claim']),
      limitMs: 120_000,
      waitMs: 300,
      startNodeDriver: () => ({ lastWords: () => 'it ended', [Symbol.asyncDispose]: () => Promise.resolve() }),
      signal: new AbortController().signal,
      report: () => undefined,
    });
    assert.match(described(results), /^fail node-identity .*the driver of node-1: no CSI driver is ready .*; it ended/);
    assert.match(described(results), /^skip node-claim /m);
  });

  for (const { does, check, section, says, consequences = [], ...driver } of nodeDefects) {
    test(`${does}: ${check} fails and names ${section}`, async () => {
      const results = await checked(driver);
      const all = described(results);
      const { status, findings = [] } = results.find(({ id }) => id === check) ?? {};
      assert.equal(status, 'fail', all);
      assert.ok(
        findings.some((finding) => finding.section === section && says.test(finding.message)),
        all,
      );
      const others = results.filter((each) => each.status === 'fail' || each.status === 'warn').map(({ id }) => id);
      assert.deepEqual(others.filter((id) => id !== check).toSorted(), consequences.toSorted(), all);
    });
  }
});
