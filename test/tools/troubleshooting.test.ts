/** docs/troubleshooting.md against what the sources say to operators. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { configWarnings } from '../../src/cli/config-checks.ts';
import type { Config } from '../../src/cli/config.ts';
import { applyFeatureGates } from '../../src/cli/feature-gates.ts';
import { type SourceText, sourceTexts } from './source-texts.ts';

const page = readFileSync(path.join(import.meta.dirname, '../../docs/troubleshooting.md'), 'utf8');
const texts = sourceTexts();

/** Texts that are not written where they are used, with the texts that they may be. */
const elsewhere = new Map([
  ['src/cli/main.ts: message', ['Arguments that are not flags are ignored']], // and those of the next test
  ['src/kube/credentials/credentials.ts: this.#loaded.problem', ['is missing, the CAs of the system are used']],
  ['src/cli/config-checks.ts: (error as Error).message', ['http: invalid pattern']],
  ['src/cli/run.ts: shutdown.failure.message', ['changed its name from', 'Lost connection to CSI driver, exiting']],
  ['src/run/run-provisioner.ts: error.line', ['Stopped leading']],
  ['src/cli/run.ts: missing', ['CSI driver does not support WHAT: CAPABILITY capability is not reported']],
  [
    'src/cli/run.ts: message',
    [
      'CSI driver probe failed: ',
      'Error getting CSI driver name: ',
      'Error getting CSI driver capabilities: ',
      'Failed to get node info from CSI driver: ',
    ],
  ],
]);

/** Whether the page holds the pieces in their order, within a line. */
function isTold(pieces: readonly string[]): boolean {
  const pattern = pieces.map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('[^\\n]*?');
  return new RegExp(pattern).test(page);
}

function check({ where, pieces, code }: SourceText): void {
  if (pieces !== undefined) {
    assert.ok(pieces.some((piece) => piece.length > 0) && isTold(pieces), `${where}: ${code} is not in the page`);
    return;
  }
  const known = elsewhere.get(`${where.replace(/:\d+$/, '')}: ${code}`);
  assert.ok(known, `${where}: write down here what ${code} may be`);
  for (const text of known) assert.ok(isTold([text]), `${text} is not in the page`);
}

describe('docs/troubleshooting.md', () => {
  test('has every log line from level info up', () => {
    assert.ok(texts.logLines.length > 50, 'the sources were searched');
    for (const text of texts.logLines) check(text);
  });

  test('has every reason of an event', () => {
    assert.ok(texts.reasons.length > 5, 'the sources were searched');
    for (const { where, pieces, code } of texts.reasons) {
      assert.equal(pieces?.length, 1, `${where}: ${code} is no constant`);
      assert.ok(page.includes(`\`${pieces[0] ?? ''}\``), `${where}: ${pieces[0] ?? ''} is not in the page`);
    }
  });

  test('has every last line of a process', () => {
    assert.ok(texts.lastLines.length > 10, 'the sources were searched');
    for (const text of texts.lastLines) check(text);
  });

  test('has the warnings about flags', () => {
    const hopeless = {
      csiTimeoutMs: 0,
      provisioning: { volumeNamePrefix: '', volumeNameUuidLength: 99, workerThreads: 0 },
      capacity: { threads: 0 },
      nodeDeployment: {},
      leaderElection: {},
      auditIntervalMs: 1,
    } as unknown as Config;
    const gates = new Map([
      ['Topology', true],
      ['KMSv1', false],
    ]);
    const notices = [...configWarnings(hopeless), ...applyFeatureGates(gates).notices];
    assert.equal(notices.length, 9);
    for (const { message } of notices) assert.ok(isTold([message]), message);
  });

  test('tells no line or reason that the sources do not have', () => {
    const all = [...texts.logLines, ...texts.reasons].flatMap(({ pieces }) => (pieces === undefined ? [] : [pieces]));
    const known = [...all, ...[...elsewhere.values()].flat().map((text) => [text])].map(
      (pieces) => new RegExp(pieces.map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*')),
    );
    const flags =
      /feature gate\. It will|^(Every call|No volume can|Nothing will|No capacity will|Leader election is left out|The driver will be asked)/;
    const section = page.slice(page.indexOf('\n## Log lines'), page.indexOf('\n## The last line'));
    const told = [...section.matchAll(/^\| `([^`]+)`/gm)].map(([, line = '']) => line);
    assert.ok(told.length > 50);
    for (const line of told) {
      assert.ok(flags.test(line) || known.some((pattern) => pattern.test(line)), `no source says: ${line}`);
    }
  });
});
