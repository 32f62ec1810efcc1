/** README.md, CONTRIBUTING.md and the pages of docs/ against the code: links, paths, commands and flags. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { loadYaml, type V1Deployment } from '@kubernetes/client-node';
import { flagTableMarkdown, withSection } from '../../scripts/flags-markdown.ts';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { findFlag, flagList } from '../../src/cli/flags.ts';
import { anchorsOf } from '../support/markdown-anchors.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');
const exists = (name: string): boolean => existsSync(path.join(root, name));

/** All but the changelog, which may name what is gone. */
const pages = globSync(['*.md', '{docs,sandbox,.github}/**/*.md', 'provisioners/*/*.md', 'deploy/charts/*/*.md'], {
  cwd: root,
})
  .filter((name) => name !== 'CHANGELOG.md')
  .toSorted();

/** Pages about programs with flags of their own. */
const withOtherFlags = /^(docs\/(sandbox|check-a-driver|testing|write-a-provisioner)\.md|(provisioners|sandbox)\/.*)$/;

/** Flags of other programs that the pages mention. */
const otherFlags = new Set([
  ...[
    '--peer',
    '--peer-flags',
    '--turns',
    '--target',
    '--check',
    '--kubernetes',
    '--profile',
    '--pairs',
    '--lists',
    '--compare',
    '--open',
    '--uri',
    '--cases',
    '--kind',
    '--record',
    '--out',
    '--dump',
    '--dry-run',
    '--local-bases',
    '--unreleased',
    '--every-field',
    '--count',
    '--guard-seconds',
  ], // our scripts
  ...['--bundle', '--certificate-identity', '--certificate-oidc-issuer', '--ignore-missing', '--repo'], // to verify a release
  ...['--allow-publish', '--archive', '--fail-on', '--file', '--manifest', '--only-fixed'], // to publish one
  ...['--pod', '--container', '--driver'], // the kubectl plugin
  ...['--silent', '--rm', '--cpu-prof'], // npm, docker and Node.js
  ...[
    '--no-election',
    '--bundle',
    '--claims',
    '--cluster',
    '--kills',
    '--logs',
    '--only',
    '--seed',
    '--without',
    '--together',
  ],
  ...['--minutes', '--driver-ms', '--latency-ms'],
  ...['--api-minutes', '--journal', '--mode', '--other', '--quiet', '--records', '--sidecar', '--short', '--program'],
  '--test-name-pattern', // npm test
  '--cpu',
  ...[
    '--test',
    '--max-semi-space-size',
    '--heap-growing-percent',
    '--memory-reducer-gc-count',
    '--single-threaded-gc',
    '--no-parallel-scavenge',
    '--no-concurrent-marking',
    '--v8-pool-size',
  ], // Node.js
  '--disable-sigusr1', // Node.js
  ...['--runtime-config'], // kube-apiserver
  ...['--previous', '--tail', '--field-selector', '--as', '--overwrite'], // kubectl
  ...['--set', '--atomic', '--reuse-values', '--reset-then-reuse-values', '--rollback-on-failure', '--values'], // helm
  '--force-conflicts', // Helm 4
  ...['--help', '--namespace', '--output', '--watch', '--context'], // no flags of the table: those of subcommands
  ...['--second-look', '--delete', '--yes', '--nobody-keeps-it', '--secret'], // csi-provisioner audit
  ...['--driver', '--resume', '--wait', '--uid', '--from', '--silence'], // csi-provisioner journal
  ...['--recursive', '--strict'], // csi-provisioner preflight
  ...['--enable-node-deployment'], // a wrong name in a text that is a contract
]);

const folders = 'bench|deploy|docs|proto|provisioners|sandbox|scripts|src|test|\\.ci|\\.github';

/** Files and folders of this repository that a page names in its text, by their paths from the root. */
function namedPaths(text: string): string[] {
  const inCode = [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
  const inBlocks = [...text.matchAll(/^```.*?^```$/gms)].map(([block]) => block);
  const pattern = new RegExp(`(?<![\\w./@-])(?:${folders})/[\\w./-]*`, 'g');
  return [...inCode, ...inBlocks].flatMap((code) => [...code.matchAll(pattern)].map(([found]) => found));
}

test('README.md is short enough to be read in five minutes', () => {
  assert.ok(read('README.md').split('\n').length <= 120);
});

test('docs/flags.md has the flags as src/cli/flags.ts says them', () => {
  const present = read('docs/flags.md');
  assert.equal(present, withSection(present, 'flags', flagTableMarkdown()), 'run: npm run docs');
  assert.ok(present.includes('| `--csi-address` |'));
});

test('the table of flags has one row of three cells for every flag', () => {
  const rows = flagTableMarkdown()
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  assert.equal(rows.length, flagList.length);
  for (const row of rows) assert.equal(row.replaceAll('\\|', '').split('|').length, 5, row);
});

test('the table of flags shows defaults', () => {
  const markdown = flagTableMarkdown();
  assert.match(markdown, /^\| `--timeout` \| `10s` \| /m);
  assert.match(markdown, /^\| `-v`, `--v` \| `0` \| /m);
  assert.match(markdown, /^\| `--kube-api-qps` \| no limit \| /m);
  assert.match(markdown, /^\| `--automaxprocs` \| `false` \| .* Accepted without effect\. \|$/m);
  assert.match(markdown, /^\| `--metrics-address` \| .* Deprecated: use --http-endpoint\. \|$/m);
});

test('every page of docs/ is linked from README.md', () => {
  const readme = read('README.md');
  for (const page of pages.filter((name) => name.startsWith('docs/'))) assert.ok(readme.includes(`(${page})`), page);
});

test('the named paths of a page are found in its code and its blocks', () => {
  const page = 'see `src/cli/flags.ts`, `npm run x -- test/e2e/a.test.ts`, `my/src/x.ts`\n```sh\nls deploy/\n```\n';
  assert.deepEqual(namedPaths(page), ['src/cli/flags.ts', 'test/e2e/a.test.ts', 'deploy/']);
});

describe('the pages', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };

  test('are found', () => {
    for (const page of ['README.md', 'CONTRIBUTING.md', 'docs/architecture.md']) assert.ok(pages.includes(page), page);
  });

  for (const page of pages) {
    test(`${page} links only to what is there`, () => {
      const text = read(page);
      for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(target)) continue;
        const [file = '', anchor] = target.split('#');
        const linked = file === '' ? page : path.join(path.dirname(page), file);
        assert.ok(exists(linked), `${page}: ${target}`);
        if (anchor !== undefined) assert.ok(anchorsOf(read(linked)).has(anchor), `${page}: ${target}`);
      }
    });

    test(`${page} names only npm scripts that there are`, () => {
      for (const [, name = ''] of read(page).matchAll(/npm run ([\w:-]+)/g)) {
        assert.ok(Object.hasOwn(scripts, name), `${page}: npm run ${name}`);
      }
    });

    test(`${page} names only files and folders that there are`, () => {
      const missing = namedPaths(read(page)).filter((named) => !exists(named));
      assert.deepEqual(missing, []);
    });
  }

  for (const page of pages.filter((name) => !withOtherFlags.test(name))) {
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

test('the workflow for GitHub runs .ci/run, with actions pinned by commit', () => {
  const text = read('.github/workflows/ci.yml');
  const { jobs } = loadYaml<{ jobs: Record<string, { steps: { uses?: string; run?: string }[] }> }>(text);
  const steps = Object.values(jobs).flatMap((job) => job.steps);
  assert.ok(steps.some(({ run }) => run === '.ci/run'));
  const used = steps.flatMap(({ uses }) => uses ?? []);
  assert.ok(used.length > 0);
  for (const action of used) assert.match(action, /@[0-9a-f]{40}$/);
});

test('the workflow for GitHub runs with CI_FULL=1 once a week, and what that compiles is not tested at each push', () => {
  interface Step {
    run?: string;
    env?: Record<string, string>;
    with?: Record<string, string>;
  }
  const { on, jobs } = loadYaml<{ on: { schedule: object[] }; jobs: Record<string, { steps: Step[] }> }>(
    read('.github/workflows/ci.yml'),
  );
  assert.equal(on.schedule.length, 1);
  const steps = Object.values(jobs).flatMap((job) => job.steps);
  const weekly = "github.event_name == 'schedule' && ";
  assert.equal(steps.find(({ run }) => run === '.ci/run')?.env?.['CI_FULL'], `\${{ ${weekly}'1' || '' }}`);
  const cached = steps.flatMap((step) => step.with?.['key'] ?? []);
  assert.equal(cached.length, 1);
  assert.ok(cached[0]?.includes(weekly), 'a cache of its own');
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
