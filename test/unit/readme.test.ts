/** README.md and the pages for operators against the code. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { loadYaml, type V1Deployment } from '@kubernetes/client-node';
import { withSection } from '../../scripts/marked-section.ts';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { flagTableMarkdown } from '../../src/cli/flags-markdown.ts';
import { findFlag } from '../../src/cli/flags.ts';
import { anchorsOf } from '../support/markdown-anchors.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');

const pages = [
  'README.md',
  'SECURITY.md',
  ...readdirSync(path.join(root, 'docs')).map((name) => `docs/${name}`),
].filter((name) => name.endsWith('.md'));

/** Flags of other programs that the pages mention. */
const otherFlags = new Set([
  ...['--peer', '--target', '--check'], // our scripts
  ...['--previous', '--tail', '--field-selector', '--as'], // kubectl
  ...['--help', '--intent-journal'], // no flag of the table, and one that is told to be missing
  ...['--enable-node-deployment'], // a wrong name in a text that is a contract
]);

describe('README.md', () => {
  test('has the flags as src/cli/flags.ts says them', () => {
    const present = read('README.md');
    assert.equal(present, withSection(present, 'flags', flagTableMarkdown()), 'run: npm run readme');
    assert.ok(present.includes('| `--csi-address` |'));
  });

  test('names only npm scripts that there are', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = [...read('README.md').matchAll(/npm run ([\w:-]+)/g)].map(([, name = '']) => name);
    assert.ok(named.length > 5);
    for (const name of named) assert.ok(Object.hasOwn(scripts, name), `npm run ${name}`);
  });
});

describe('the pages for operators', () => {
  for (const page of pages) {
    test(`${page} links only to what is there`, () => {
      const text = read(page);
      for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(target)) continue;
        const [file = '', anchor] = target.split('#');
        const linked = file === '' ? page : path.join(path.dirname(page), file);
        assert.ok(existsSync(path.join(root, linked)), `${page}: ${target}`);
        if (anchor !== undefined) assert.ok(anchorsOf(read(linked)).has(anchor), `${page}: ${target}`);
      }
    });
  }

  for (const page of [
    'README.md',
    'SECURITY.md',
    'docs/metrics.md',
    'docs/migrate-from-go.md',
    'docs/troubleshooting.md',
  ]) {
    test(`${page} names only flags that there are`, () => {
      const text = read(page).replace(/<!--.*?-->/gs, '');
      for (const [flag] of text.matchAll(/(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9](?![\w-])/g)) {
        assert.ok(findFlag(flag.slice(2)) !== undefined || otherFlags.has(flag), `${page}: ${flag}`);
      }
    });
  }
});

test('the arguments in deploy/ are understood', () => {
  const { spec } = loadYaml<V1Deployment>(read('deploy/base/deployment.yaml'));
  const sidecar = spec?.template.spec?.containers.find(({ name }) => name === 'csi-provisioner');
  assert.ok(sidecar?.args !== undefined && sidecar.args.length > 0);
  const parsed = parseCommandLine({ argv0: 'csi-provisioner', args: sidecar.args, environment: {}, version: 'v0' });
  assert.equal(parsed.kind, 'run');
  assert.deepEqual(parsed.notices, []);
});

describe('withSection', () => {
  const page = 'before\n<!-- x: begin -->\nold\n<!-- x: end -->\nafter\n';

  test('replaces what stands between the marks, and only once', () => {
    const fresh = withSection(page, 'x', '| new |\n');
    assert.match(fresh, /^before\n<!-- x: begin -->\n[^]*\| new \|[^]*<!-- x: end -->\nafter\n$/);
    assert.ok(!fresh.includes('old'));
    assert.equal(withSection(fresh, 'x', '| new |'), fresh);
  });

  for (const [what, text] of [
    ['without marks', 'nothing'],
    ['without the end', '<!-- x: begin -->'],
    ['with the marks in the wrong order', '<!-- x: end --><!-- x: begin -->'],
    ['with marks twice', page + page],
  ] as const) {
    test(`refuses a text ${what}`, () => {
      assert.throws(() => withSection(text, 'x', ''), /does not have <!-- x: begin -->/);
    });
  }
});
