/**
 * `csi-sandbox check` on drivers that are broken on purpose: each mistake is named, and for one in five the whole catalogue
 * is run, in which no other check fails.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { catalogue } from '../../../sandbox/check/catalogue.ts';
import { checkDriver } from '../../../sandbox/check/check-driver.ts';
import type { CheckResult } from '../../../sandbox/check/check.ts';
import { exitCode } from '../../../sandbox/check/report.ts';
import { benchOptions } from '../../support/broken-drivers/bench-options.ts';
import { BrokenDriver } from '../../support/broken-drivers/broken-driver.ts';
import { type Defect, defects } from '../../support/broken-drivers/defects.ts';

/** Those that need no control plane. */
const checks = catalogue.filter(({ part }) => part !== 'kubernetes');

async function checked(
  { spoils, flags = [], timeoutMs = 20_000 }: Pick<Defect, 'spoils' | 'flags' | 'timeoutMs'>,
  chosen = checks,
): Promise<CheckResult[]> {
  await using driver = await BrokenDriver.start({ spoils: spoils(), flags });
  return await checkDriver({
    bench: {
      ...benchOptions(driver.socketPath),
      timeoutMs,
      mutableParameters: { tier: 'fast' },
      nodes: [{ name: 'node-b', segments: { zone: 'b' } }],
    },
    checks: chosen,
    limitMs: 120_000,
    waitMs: 10_000,
    signal: new AbortController().signal,
    report: () => undefined,
  });
}

function found(results: readonly CheckResult[]): string[] {
  return results
    .filter(({ status }) => status === 'fail' || status === 'warn')
    .map(
      ({ id, findings }) => `${id}: ${findings.map(({ section, message }) => `${message} [${section}]`).join('; ')}`,
    );
}

describe('a driver without a mistake', () => {
  test('passes every check', async () => {
    const results = await checked({ spoils: () => ({}) });
    assert.deepEqual(found(results), []);
    assert.deepEqual(
      results.filter(({ status }) => status === 'skip').map(({ id }) => id),
      [],
    );
    assert.equal(exitCode(results, { strict: true }), 0);
  });
});

/** Checks of what earlier ones have called. */
const ofEarlierCalls = new Set(['list', ...checks.filter(({ part }) => part === 'answers').map(({ id }) => id)]);

describe('a driver that is broken on purpose', { concurrency: 4 }, () => {
  for (const [index, { does, check, section, says, consequences = [], ...driver }] of defects.entries()) {
    const isWhole = ofEarlierCalls.has(check) || index % 10 === 0;
    const concerned = checks.filter(({ id }) => isWhole || id === check || consequences.includes(id));
    test(`${does}: ${check} fails and names ${section}`, async () => {
      const results = await checked(driver, concerned);
      const all = found(results).join('\n');
      const { status, findings = [] } = results.find(({ id }) => id === check) ?? {};
      assert.equal(status, 'fail', all);
      assert.ok(
        findings.some((finding) => finding.section === section && says.test(finding.message)),
        all,
      );
      const others = results
        .filter((result) => result.status === 'fail' || result.status === 'warn')
        .map(({ id }) => id);
      assert.deepEqual(others.filter((id) => id !== check).toSorted(), consequences.toSorted(), all);
      assert.equal(exitCode(results, { strict: false }), 1);
    });
  }
});
