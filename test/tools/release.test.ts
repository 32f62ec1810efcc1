/** What a release is made of, and what is refused: in a repository of its own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { shippedPage } from '../../scripts/package/repository.ts';
import { writeArchive } from '../../scripts/release/archive.ts';
import { provenanceStatement } from '../../scripts/release/listing.ts';
import { type Release, releaseOf, type ReleaseOptions } from '../../scripts/release/release-of.ts';

const exec = promisify(execFile);
const changelog = `# Changelog

## Unreleased

- Not out yet.

## [1.2.3] - 2026-01-02

- New.

### NFS

- More.

## 1.2.2

- Old.

## 1.2.1
`;

let folder: string;
const git = async (...args: string[]): Promise<string> => {
  const author = ['-c', 'user.name=Somebody', '-c', 'user.email=somebody@example.com'];
  const env = { ...process.env, GIT_COMMITTER_DATE: '2026-01-02T03:04:05Z' };
  return (await exec('git', [...author, '-C', folder, ...args], { env })).stdout.trim();
};
const write = (file: string, text: string): Promise<void> => writeFile(path.join(folder, file), text);
const manifestOf = (version: string): string =>
  JSON.stringify({ version, repository: { url: 'git+https://git.example.com/o/r.git' } });
const release = (options: Partial<ReleaseOptions> = {}): Promise<Release> =>
  releaseOf({ output: path.join(folder, 'out'), ...options }, folder);

describe('a release', () => {
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'release-'));
    await git('init', '--quiet');
    await write('package.json', manifestOf('1.2.3'));
    await write('CHANGELOG.md', changelog);
    await git('add', '.');
    await git('commit', '--quiet', '--message', 'everything');
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  test('is of the tag of its commit, with the section of the changelog and the time of the commit', async () => {
    await git('tag', 'v1.2.3');
    const made = await release();
    assert.equal(made.version, 'v1.2.3');
    assert.equal(made.commit, await git('rev-parse', 'HEAD'));
    assert.equal(made.epoch, Date.parse('2026-01-02T03:04:05Z') / 1000);
    assert.equal(made.notes, '- New.\n\n### NFS\n\n- More.\n');
    assert.equal(made.home, 'https://git.example.com/o/r');
  });

  test('can be tried before it is due', async () => {
    const made = await release({ unreleased: true });
    assert.deepEqual([made.version, made.notes], ['v1.2.3', '- Not out yet.\n']);
  });

  const refused = async (options: Partial<ReleaseOptions>, message: RegExp): Promise<void> => {
    await assert.rejects(release(options), { name: 'RefusedRelease', message });
  };

  test('is refused while files are changed or not committed', async () => {
    await write('stray.txt', '');
    await refused({ version: 'v1.2.3' }, /^the tree has changes that are not committed:\n\?\? stray\.txt$/);
  });

  test('is refused without a tag, and with two', async () => {
    await refused({}, /^this commit has no tag such as v1\.2\.3/);
    await git('tag', 'v1.2.3');
    await git('tag', 'v1.2.4');
    await refused({}, /^this commit has several tags, v1\.2\.3, v1\.2\.4/);
  });

  test('is refused when it is not the version of package.json, or none', async () => {
    await refused({ version: 'v1.3.0' }, /^the version is v1\.3\.0, and package\.json has 1\.2\.3$/);
    await refused({ version: '1.2.3' }, /^1\.2\.3 is no version such as v1\.2\.3$/);
  });

  for (const [version, message] of [
    ['1.2.0', /^CHANGELOG\.md has no section "## 1\.2\.0"$/],
    ['1.2.1', /^CHANGELOG\.md has nothing under "## 1\.2\.1"$/],
  ] as const) {
    test(`is refused when the changelog says nothing of it: ${version}`, async () => {
      await write('package.json', manifestOf(version));
      await git('commit', '--quiet', '--all', '--message', version);
      await refused({ version: `v${version}` }, message);
    });
  }

  test('has a statement that names each file by its checksum, and the commit', async () => {
    const made = await release({ version: 'v1.2.3' });
    const statement = provenanceStatement(made, [{ name: 'a.tgz', bytes: 1, sha256: 'ab' }]) as {
      subject: unknown;
      predicate: { buildDefinition: { resolvedDependencies: { digest: { gitCommit: string } }[] } };
    };
    assert.deepEqual(statement.subject, [{ name: 'a.tgz', digest: { sha256: 'ab' } }]);
    assert.equal(statement.predicate.buildDefinition.resolvedDependencies[0]?.digest.gitCommit, made.commit);
  });

  test('has archives whose bytes do not depend on when and in which order the files were made', async () => {
    const archive = async (name: string, files: readonly string[], time: Date): Promise<Buffer> => {
      const inside = path.join(folder, name);
      await mkdir(inside);
      for (const file of files) await writeFile(path.join(inside, file), file);
      for (const file of files) await utimes(path.join(inside, file), time, time);
      await writeArchive(path.join(folder, `${name}.tar.gz`), { folder: inside, paths: ['.'], epoch: 1_700_000_000 });
      return await readFile(path.join(folder, `${name}.tar.gz`));
    };
    const [one, two] = [await archive('one', ['a', 'b'], new Date(0)), await archive('two', ['b', 'a'], new Date())];
    assert.ok(one.length > 0);
    assert.ok(one.equals(two));
  });

  test('has pages whose links go to the repository for what is not shipped', () => {
    const page = '[a](b.md#c) [d](../src/x.ts#L1) [e](#here) [f](https://example.com) [g](../deploy/)';
    const options = { file: 'docs/a.md', isShipped: (file: string) => file === 'docs/b.md', home: 'https://h/v1' };
    assert.equal(
      shippedPage(page, options),
      '[a](b.md#c) [d](https://h/v1/src/x.ts#L1) [e](#here) [f](https://example.com) [g](https://h/v1/deploy)',
    );
  });
});
