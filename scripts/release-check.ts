/**
 * `npm run release:check`: does what docs/releasing.md says, without publishing anything. Gives the sources of this commit the version of
 * the next release, tags them, makes the release twice, in different folders, with other settings of the user, and compares all bytes.
 * Images are compared where they can be built: by root, with buildah; on stand-ins of their base images with `--local-bases`. Then it
 * uses what was made, with the commands of the page. Exit code 1 where anything differs or fails.
 */
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runTool } from './image/run-tool.ts';
import { readManifest } from './package/repository.ts';
import { rehearse } from './release/rehearse.ts';
import { scriptCommand } from './script-command.ts';

const root = path.join(import.meta.dirname, '..');
const options = scriptCommand('npm run release:check --', 'Makes a release twice and compares.')
  .option('--local-bases', 'images on base images made here')
  .option('--without-images', 'compares everything else')
  .option('--architectures <LIST>', 'of the images', process.arch === 'x64' ? 'amd64' : process.arch)
  .parse()
  .opts<{ localBases?: true; withoutImages?: true; architectures: string }>();

/** What must make no difference. */
const settings = [
  { folder: 'a', environment: { TZ: 'UTC', LC_ALL: 'C' }, umask: '022' },
  { folder: 'another/and-longer', environment: { TZ: 'Asia/Tokyo', LC_ALL: 'C.UTF-8' }, umask: '002' },
] as const;
const madeFolder = 'made';

async function main(): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), 'release-check-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const source = path.join(folder, 'source');
  const version = await commitRelease(source);
  const outputs: Map<string, string>[] = [];
  for (const setting of settings) {
    outputs.push(await releasedFrom(source, path.join(folder, setting.folder), setting));
  }
  const [first = new Map<string, string>(), second = new Map<string, string>()] = outputs;
  if (first.size === 0) throw new Error('nothing was made');
  const names = [...new Set([...first.keys(), ...second.keys()])].toSorted();
  const different = names.filter((name) => first.get(name) !== second.get(name));
  for (const name of names)
    console.log(`${different.includes(name) ? 'DIFFERENT' : 'same     '}  ${name}  ${first.get(name) ?? ''}`);
  console.log(`${names.length - different.length} of ${names.length} files have the same bytes`);
  if (different.length > 0) process.exitCode = 1;
  const made = path.join(folder, settings[0].folder, madeFolder);
  await rehearse({ source, made, version, withImages: options.withoutImages !== true });
}

/** Makes the commit of the next release, with its tag, in a clone; a commit that is of a release only gets the tag. @returns the tag. */
async function commitRelease(folder: string): Promise<string> {
  const git = (...args: string[]): Promise<string> => runTool('git', ['-C', folder, ...args]);
  const commit = (await runTool('git', ['-C', root, 'rev-parse', 'HEAD'])).trim();
  await runTool('git', ['clone', '--quiet', '--no-checkout', root, folder]);
  await git('checkout', '--quiet', commit);
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  const { version } = await readManifest(folder);
  const isReleased = !(await readFile(path.join(folder, 'CHANGELOG.md'), 'utf8')).includes('\n## Unreleased\n');
  const tag = `v${isReleased ? version : version.replace(/\d+$/, (patch) => `${Number(patch) + 1}`)}`;
  if (!isReleased) {
    await runTool('npm', ['run', '--silent', '--prefix', folder, 'release:version', '--', tag.slice(1)]);
    const author = ['-c', 'user.name=release:check', '-c', 'user.email=release-check@example.com'];
    await git(...author, 'commit', '--quiet', '--all', '--message', `release: ${tag}`);
  }
  await git('tag', '--force', tag);
  return tag;
}

/** Checks out the release into a folder and makes it there. @returns checksums by file. */
async function releasedFrom(
  source: string,
  folder: string,
  { environment, umask }: { environment: Record<string, string>; umask: string },
): Promise<Map<string, string>> {
  await mkdir(path.dirname(folder), { recursive: true });
  await runTool('sh', ['-c', `umask ${umask} && git clone --quiet "$1" "$2"`, 'clone', source, folder]);
  await cp(path.join(root, 'node_modules'), path.join(folder, 'node_modules'), {
    recursive: true,
    verbatimSymlinks: true,
  });
  const flags = [
    ...['--dry-run', '--output', path.join(folder, madeFolder), '--architectures', options.architectures],
    ...(options.localBases === true ? ['--local-bases'] : []),
    ...(options.withoutImages === true ? ['--without-images'] : []),
  ];
  const script = `umask ${umask} && cd "$1" && shift && exec npm run --silent release -- "$@"`;
  console.log(await runTool('sh', ['-c', script, 'release', folder, ...flags], { environment }));
  const made = path.join(folder, madeFolder);
  const sums = new Map<string, string>();
  for (const name of await readdir(made)) {
    sums.set(
      name,
      createHash('sha256')
        .update(await readFile(path.join(made, name)))
        .digest('hex'),
    );
  }
  await rm(path.join(folder, 'node_modules'), { recursive: true });
  return sums;
}

await main();
