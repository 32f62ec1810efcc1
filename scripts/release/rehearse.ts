/** A release is used as those use it who verify, keep and install it: with the commands of docs/releasing.md, as they stand there. */
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { load } from 'js-yaml';
import { runTool } from '../image/run-tool.ts';

/** What was made. */
export interface MadeRelease {
  /** Folder of the repository with the commit of the release. */
  readonly source: string;
  /** Folder of its files. */
  readonly made: string;
  /** Such as `v0.1.0`. */
  readonly version: string;
  readonly withImages: boolean;
}

/** @throws at the first thing that is not as the page says. */
export async function rehearse(release: MadeRelease): Promise<void> {
  const { source, made, version } = release;
  const page = await readFile(path.join(source, 'docs/releasing.md'), 'utf8');
  await checkFiles(release, page);
  await shell(commandOf(page, 'sha256sum --check --ignore-missing'), made);
  console.log('The checksums are those of the files');
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(made, '../rehearsal-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  for (const file of await readdir(made)) await symlink(path.join(made, file), path.join(folder, file));
  console.log(`The bundle to be kept is ${await keptBundle(page, folder, version)}`);
  console.log(`The plugin of the krew manifest is ${await plugin(folder, version)}`);
  const publish = `npm publish --dry-run --access public ./csi-provisioner-${version.slice(1)}.tgz`;
  await shell(publish, folder, { npm_config_registry: 'http://127.0.0.1:9/', npm_config_fetch_retries: '0' });
  console.log('npm would publish the package');
}

async function shell(script: string, folder: string, environment: Record<string, string> = {}): Promise<string> {
  return await runTool('sh', ['-ec', `cd "$1"\n${script}`, 'sh', folder], { environment });
}

/** The command of the page that has this in it, with the lines that belong to it. */
function commandOf(page: string, part: string): string {
  const blocks = [...page.matchAll(/^ *```sh\n(.*?)^ *```$/gms)].map(([, block = '']) => block);
  const [found, ...others] = blocks.flatMap((block) => block.split('\n')).filter((line) => line.includes(part));
  if (found === undefined || others.length > 0) throw new Error(`not one command of docs/releasing.md has ${part}`);
  return found.trim();
}

/** Compares the files with the table of the page: what is there has a row, and what has a row is there. */
async function checkFiles({ made, withImages }: MadeRelease, page: string): Promise<void> {
  const [table = ''] = /^\| file .*?\n\n/ms.exec(page) ?? [];
  const named = [...table.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, names = '']) => names.match(/[^`, ]+/g) ?? []);
  const files = await readdir(made);
  const isFile = (name: string, file: string): boolean =>
    new RegExp(`^${name.replaceAll('.', String.raw`\.`).replaceAll(/IMAGE|CHART|VERSION|ARCH/g, '.+')}$`).test(file);
  const isOfImages = (name: string): boolean => /^(IMAGE|base-images)/.test(name);
  const absent = named.filter((name) => !files.some((file) => isFile(name, file)) && (withImages || !isOfImages(name)));
  const unknown = files.filter((file) => !named.some((name) => isFile(name, file)));
  if (absent.length + unknown.length > 0)
    throw new Error(`in docs/releasing.md alone: ${absent.join(', ')}; made, and not in it: ${unknown.join(', ')}`);
  console.log(`docs/releasing.md names all ${files.length} files`);
}

/** @returns what the bundle that the next release upgrades from says of itself. */
async function keptBundle(page: string, folder: string, version: string): Promise<string> {
  await shell(`${commandOf(page, 'mkdir -p test/releases')}\n${commandOf(page, 'tar -xzOf')}`, folder);
  const kept = path.join(folder, `test/releases/csi-provisioner-${version}.cjs.gz`);
  await writeFile(path.join(folder, 'bundle.cjs'), gunzipSync(await readFile(kept)));
  await writeFile(path.join(folder, 'main.cjs'), "void require('./bundle.cjs').main();\n");
  return await named(version, [path.join(folder, 'main.cjs'), '--version']);
}

/** @returns what the kubectl plugin says of itself that krew would install. */
async function plugin(folder: string, version: string): Promise<string> {
  const { spec } = load(await readFile(path.join(folder, 'csi.yaml'), 'utf8')) as {
    spec: { platforms: { uri: string; sha256: string; bin: string }[] };
  };
  const [{ uri, sha256, bin } = { uri: '', sha256: '', bin: '' }] = spec.platforms;
  const archive = path.join(folder, path.posix.basename(uri));
  const sum = createHash('sha256')
    .update(await readFile(archive))
    .digest('hex');
  if (sum !== sha256 || !uri.includes(`/${version}/`)) throw new Error(`csi.yaml names ${uri}, ${sha256}, not ${sum}`);
  await runTool('tar', ['-xzf', archive, '--directory', folder]);
  return await named(version, [path.join(folder, bin), '--version']);
}

async function named(version: string, args: readonly string[]): Promise<string> {
  const text = (await runTool(process.execPath, args)).trim();
  if (!text.includes(version)) throw new Error(`${args.join(' ')} says ${text}, not ${version}`);
  return text;
}
