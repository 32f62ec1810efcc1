/** .github/workflows/release.yml: what it may do, and that it publishes what the dry run makes. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { loadYaml } from '@kubernetes/client-node';

const root = path.join(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}
interface Job {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly needs?: string | readonly string[];
  readonly strategy?: { readonly matrix: { readonly image: readonly string[] } };
  readonly 'timeout-minutes'?: number;
  readonly steps: readonly Step[];
}
interface Workflow {
  readonly on: { readonly push: { readonly tags: readonly string[] } };
  readonly permissions: object;
  readonly jobs: Readonly<Record<string, Job>>;
}

const workflow = loadYaml<Workflow>(read('.github/workflows/release.yml'));
const jobs = Object.entries(workflow.jobs);
const writes = ({ permissions = {} }: Job): string[] =>
  Object.keys(permissions)
    .filter((name) => permissions[name] === 'write')
    .toSorted();
const commands = (job: Job): string => job.steps.map(({ run = '' }) => run).join('\n');
const job = (name: string): Job => workflow.jobs[name] ?? assert.fail(name);

describe('the release workflow', () => {
  test('runs for tags of versions alone, and gives no job a permission that it does not ask for', () => {
    assert.deepEqual(Object.keys(workflow.on), ['push']);
    assert.deepEqual(workflow.on.push, { tags: ['v*.*.*'] });
    assert.deepEqual(workflow.permissions, {});
    for (const [name, { permissions, 'timeout-minutes': limit }] of jobs) {
      assert.ok(permissions !== undefined && limit !== undefined, name);
    }
  });

  test('lets each job write what it publishes, and the one that runs the code of packages nothing', () => {
    assert.deepEqual(Object.fromEntries(jobs.map(([name, each]) => [name, writes(each)])), {
      build: [],
      scan: [],
      images: ['attestations', 'id-token', 'packages'],
      npm: ['id-token'],
      files: ['attestations', 'contents', 'id-token'],
    });
    for (const [name, each] of jobs) assert.equal(/npm (ci|install)/.test(commands(each)), name === 'build', name);
  });

  test('makes everything by the dry run, once, and publishes only what was scanned', () => {
    const makers = jobs.filter(([, each]) => commands(each).includes('npm run release -- --dry-run'));
    assert.deepEqual(
      makers.map(([name]) => name),
      ['build'],
    );
    for (const name of ['images', 'npm']) assert.deepEqual(job(name).needs, ['build', 'scan']);
    assert.deepEqual(job('files').needs, ['images', 'npm']);
  });

  test('scans and pushes each image that the dry run makes', () => {
    const made = [...read('scripts/release/images.ts').matchAll(/^ {2}'?([\w-]+)'?: \{ target: /gm)].map(
      ([, name]) => name,
    );
    assert.ok(made.length > 0);
    for (const name of ['scan', 'images']) {
      assert.deepEqual(job(name).strategy?.matrix.image.toSorted(), made.toSorted(), name);
    }
  });

  test('signs images and checksums, and has provenance for images, files and the npm package', () => {
    assert.match(commands(job('images')), /cosign sign --yes --recursive "\$IMAGE@/);
    assert.match(commands(job('files')), /cosign sign-blob --yes --bundle SHA256SUMS/);
    assert.match(commands(job('npm')), /npm publish --provenance/);
    for (const name of ['images', 'files']) {
      assert.ok(
        job(name).steps.some(({ uses = '' }) => uses.startsWith('actions/attest-build-provenance@')),
        name,
      );
    }
  });

  test('puts nothing that others can name into a script as text', () => {
    for (const [name, each] of jobs) {
      for (const [, expression = ''] of commands(each).matchAll(/\$\{\{ *(.*?) *\}\}/g)) {
        assert.match(expression, /^(matrix\.image|steps\.push\.outputs\.digest)$/, name);
      }
    }
  });
});

test('every workflow pins its actions by commit, with the tag as a comment', () => {
  const folder = '.github/workflows';
  for (const name of readdirSync(path.join(root, folder))) {
    const lines = read(`${folder}/${name}`).split('\n');
    const used = lines.filter((line) => /^\s*(- )?uses:/.test(line));
    assert.ok(used.length > 0, name);
    for (const line of used) assert.match(line, /uses: [\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/, name);
  }
});

test('Renovate keeps base images and actions pinned by digest', () => {
  const { extends: presets } = JSON.parse(read('.github/renovate.json')) as { extends: string[] };
  for (const preset of ['docker:pinDigests', 'helpers:pinGitHubActionDigests'])
    assert.ok(presets.includes(preset), preset);
});
