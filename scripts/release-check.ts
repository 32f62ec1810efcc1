/**
 * `npm run release:check`: makes a release of this commit twice, in different folders, with other settings of the user, and compares all
 * bytes. Images are compared where they can be built: by root, with buildah; on stand-ins of their base images with `--local-bases`.
 * Exit code 1 where anything differs.
 */
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runTool } from './image/run-tool.ts';
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
];

async function main(): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), 'release-check-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const commit = (await runTool('git', ['-C', root, 'rev-parse', 'HEAD'])).trim();
  const outputs: Map<string, string>[] = [];
  for (const setting of settings) {
    outputs.push(await releasedFrom(commit, path.join(folder, setting.folder), setting));
  }
  const [first = new Map<string, string>(), second = new Map<string, string>()] = outputs;
  if (first.size === 0) throw new Error('nothing was made');
  const names = [...new Set([...first.keys(), ...second.keys()])].toSorted();
  const different = names.filter((name) => first.get(name) !== second.get(name));
  for (const name of names)
    console.log(`${different.includes(name) ? 'DIFFERENT' : 'same     '}  ${name}  ${first.get(name) ?? ''}`);
  console.log(`${names.length - different.length} of ${names.length} files have the same bytes`);
  if (different.length > 0) process.exitCode = 1;
}

/** Checks out a commit into a folder and makes the release there. @returns checksums by file. */
async function releasedFrom(
  commit: string,
  folder: string,
  { environment, umask }: { environment: Record<string, string>; umask: string },
): Promise<Map<string, string>> {
  await mkdir(path.dirname(folder), { recursive: true });
  const checkOut = `umask ${umask} && git clone --quiet --no-checkout "$1" "$2" && git -C "$2" checkout --quiet "$3"`;
  await runTool('sh', ['-c', checkOut, 'clone', root, folder, commit]);
  await cp(path.join(root, 'node_modules'), path.join(folder, 'node_modules'), {
    recursive: true,
    verbatimSymlinks: true,
  });
  const flags = [
    ...['--dry-run', '--unreleased', '--output', path.join(folder, 'made'), '--architectures', options.architectures],
    ...(options.localBases === true ? ['--local-bases'] : []),
    ...(options.withoutImages === true ? ['--without-images'] : []),
  ];
  const script = `umask ${umask} && cd "$1" && shift && exec npm run --silent release -- "$@"`;
  console.log(await runTool('sh', ['-c', script, 'release', folder, ...flags], { environment }));
  const made = path.join(folder, 'made');
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
