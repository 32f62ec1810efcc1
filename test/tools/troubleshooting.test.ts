/** docs/troubleshooting.md against what the sources say to operators. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { configWarnings } from '../../src/cli/config-checks.ts';
import type { Config } from '../../src/cli/config.ts';
import { applyFeatureGates } from '../../src/cli/feature-gates.ts';
import { causes } from '../../src/explain/causes/cause.ts';
import { type SourceText, sourceTexts } from './source-texts.ts';
import { TextTemplates } from './text-templates.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(path.join(root, 'docs', name), 'utf8');
const page = read('troubleshooting.md');
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
function isTold(pieces: readonly string[], text = page): boolean {
  const pattern = pieces.map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('[^\\n]*?');
  return new RegExp(pattern).test(text);
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
  test('has every log line from level warn up', () => {
    const lines = texts.logLines.filter(({ level }) => level !== 'info');
    assert.ok(lines.length > 80, `${lines.length}: the sources were searched`);
    for (const text of lines) check(text);
  });

  test('has what every event says', () => {
    const written = texts.messages.filter(({ pieces }) => pieces?.some((piece) => /[a-z]{4}.*[a-z]{4}/.test(piece)));
    assert.ok(written.length > 20, `${written.length} of ${texts.messages.length}`);
    for (const { where, pieces = [], code } of written) {
      const first = pieces.find((piece) => /[a-z]{4}/.test(piece))!;
      assert.ok(isTold([first.slice(0, 60).trim()]), `${where}: ${code} is not in the page`);
    }
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
    const known = [...texts.logLines, ...texts.nfsLogLines]
      .flatMap(({ pieces }) => (pieces === undefined ? [] : [pieces]))
      .concat([...elsewhere.values()].flat().map((text) => [text]))
      .map((pieces) => new RegExp(pieces.map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*')));
    const flags =
      /feature gate\. It will|^(Every call|No volume can|Nothing will|No capacity will|Leader election is left out|The driver will be asked)/;
    const sections = [between('\n## Log lines', '\n## The last line'), between('\n## The NFS server', '\n## Alerts')];
    const told = sections.flatMap((section) => firstCells(section)).flatMap(quotesOf);
    assert.ok(told.length > 120, String(told.length));
    for (const line of told) {
      assert.ok(flags.test(line) || known.some((pattern) => pattern.test(line)), `no source says: ${line}`);
    }
    const reasons = new Set(texts.reasons.map(({ pieces }) => pieces?.[0]));
    const events = firstCells(between('\n## Events about claims', '\n## Log lines')).flatMap(quotesOf);
    const toldReasons = events.filter((quote) => !quote.includes(' '));
    assert.ok(toldReasons.length > 20, String(toldReasons.length));
    for (const reason of toldReasons) assert.ok(reasons.has(reason), `no event has the reason ${reason}`);
  });
});

/** Texts of Kubernetes, Node.js and others, which the page quotes. */
const othersTexts = [
  ['secrets "', '" not found'],
  ['pods "', '" not found'],
  ['secrets "', '" is forbidden: ', ''],
  ['persistentvolumes "', '" is forbidden: ', ''],
  ['volumeattributesclasses.storage.k8s.io "', '" is forbidden: ', ''],
  ['FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory'],
  ['JavaScript heap out of memory'],
  ['volumeBindingMode: WaitForFirstConsumer'],
  ['map[', ']'], // as Go prints labels
];
/** Pieces of our texts that are no texts by themselves, or that the page gives with one of the values that they may have. */
const partsOfTexts = [
  ['snapshot.storage.k8s.io/v1'],
  ['leases.coordination.k8s.io'],
  ['every minute'],
  ['which has renewed the lease and may still run'],
  ['reportOnly: ', ''],
];
/** Single words that are not ours. */
const othersWords = new Set(['OOMKilled', 'runbook_url', 'accessible_topology']);
const commands = /^(kubectl|csi-provisioner|journal|audit|why|drain|discard|adopt|-\w|--[a-z-]+( |=|$)|-[a-z-]+$)/;

describe('what docs/troubleshooting.md quotes', () => {
  const quotes = [...new Set(quotesOf(page))].filter((quote) => !commands.test(quote));
  const quotedTexts = quotes.filter((quote) => quote.includes(' '));
  const quotedWords = quotes.filter((quote) => !quote.includes(' '));
  const templates = new TextTemplates([...texts.templates, ...othersTexts, ...partsOfTexts]);

  test('are texts of the sources, but for names and numbers', () => {
    assert.ok(templates.size > 3000, String(templates.size));
    assert.ok(quotedTexts.length > 200, String(quotedTexts.length));
    const unknown = quotedTexts.filter((quote) => !templates.makes(quote) && !isShortened(quote));
    assert.deepEqual(unknown, []);
  });

  test('are not texts of the sources once a word is another one', () => {
    const changed = quotedTexts.map((quote) => quote.replace(longestWord(quote), 'otherwise'));
    assert.deepEqual(
      changed.filter((quote) => templates.makes(quote) || isShortened(quote)),
      [],
    );
  });

  test('are words of the sources: causes, metrics, fields and values', () => {
    const { texts: literals, names } = texts.words;
    const headings = new Set(page.match(/(?<=^#+ )\w+$/gm));
    const isKnown = (word: string): boolean =>
      literals.has(word) || names.has(word) || headings.has(word) || othersWords.has(word);
    const words = quotedWords.filter((word) => /^[a-z]\w+(-\w+)*$/i.test(word) && !/^[A-Z_]+$/.test(word));
    assert.ok(words.length > 120, String(words.length));
    assert.deepEqual(
      words.filter((word) => !isKnown(word)),
      [],
    );
  });

  test('are metrics with labels that the sources have', () => {
    const metrics = quotedWords.filter((word) => /^[a-z]+(_[a-z]+)+(\{.*\})?$/.test(word) && !othersWords.has(word));
    assert.ok(metrics.length >= 3, metrics.join(', '));
    for (const metric of metrics) {
      const [, name = '', label = '', value = ''] = /^(\w+)(?:\{(\w+)="(\w+)"\})?$/.exec(metric) ?? [];
      for (const word of [name, value]) assert.ok(word === '' || texts.words.texts.has(word), `${metric}: ${word}`);
      assert.ok(label === '' || texts.words.names.has(label) || texts.words.texts.has(label), `${metric}: ${label}`);
    }
  });
});

test('each cause is in docs/why.md, docs/stuck-claims.md or docs/troubleshooting.md with what it means', () => {
  const quoted = new Set(['why.md', 'stuck-claims.md', 'troubleshooting.md'].flatMap((name) => quotesOf(read(name))));
  for (const cause of causes) assert.ok(quoted.has(cause), cause);
});

test('each warning, error and event of the NFS provisioners is in the page, or in that of the provisioner', () => {
  const pages = [page, read('nfs-server.md'), read('nfs-subdir.md')].join('\n');
  const lines = texts.nfsLogLines.filter(({ level }) => level !== 'info');
  assert.ok(lines.length > 30, String(lines.length));
  for (const { where, pieces = [], code } of lines) {
    assert.ok(pieces.some((piece) => piece.length > 3) && isTold(pieces, pages), `${where}: ${code}`);
  }
  const reasons = texts.nfsReasons.flatMap(({ pieces }) => pieces ?? []);
  assert.ok(reasons.length > 0);
  for (const reason of reasons) assert.ok(pages.includes(`\`${reason}\``), reason);
});

/** What stands in backticks, but for blocks. */
function quotesOf(text: string): string[] {
  return Array.from(text.replaceAll(/^```.*?^```$/gms, '').matchAll(/``(.+?)``|`([^`]+)`/gs), ([, twice, once = '']) =>
    (twice ?? once).replaceAll(/\s+/g, ' ').trim(),
  );
}

function between(start: string, end: string): string {
  return page.slice(page.indexOf(start), page.indexOf(end));
}

function firstCells(section: string): string[] {
  return Array.from(section.matchAll(/^\| (`[^|]*?) +\|/gm), ([, cell = '']) => cell);
}

/** The beginning of a log line, in whole words. */
function isShortened(quote: string): boolean {
  return texts.logLines.some(
    ({ pieces }) => pieces?.[0]?.startsWith(quote) && /^\W/.test(pieces[0].slice(quote.length)),
  );
}

function longestWord(text: string): string {
  return (text.match(/[a-z]+/g) ?? []).toSorted((one, other) => other.length - one.length)[0] ?? '';
}
