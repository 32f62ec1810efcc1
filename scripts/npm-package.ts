/**
 * `npm run package`: the npm package, as a file. It is packed in a folder of its own: its pages link to each other, and to the
 * repository for what is not in the package, and package.json has the dependencies of the library alone, since the programs
 * bring theirs along. Two runs make the same bytes.
 *
 *   node scripts/npm-package.ts --out FOLDER   where the file goes, by default here
 *   node scripts/npm-package.ts --built        takes what is in dist instead of building it
 */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runTool } from './image/run-tool.ts';
import { type Manifest, readManifest, repositoryPage, shippedPage } from './package/repository.ts';
import { scriptCommand } from './script-command.ts';

const root = path.join(import.meta.dirname, '..');
const options = scriptCommand('npm run package --', 'Makes the npm package, with the pages of docs/.')
  .option('--out <FOLDER>', 'where to', '.')
  .option('--built', 'takes dist/ as it is')
  .parse()
  .opts<{ out: string; built?: true }>();
/** What npm packs whether it is listed or not. */
const alwaysPacked = ['LICENSE', 'README.md'];

async function main(): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), 'npm-package-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  if (options.built !== true) await build();
  const manifest = await readManifest();
  for (const file of [...alwaysPacked, ...manifest.files]) {
    await cp(path.join(root, file), path.join(folder, file), { recursive: true });
  }
  await writeFile(path.join(folder, 'package.json'), `${JSON.stringify(await shippedManifest(manifest), null, 2)}\n`);
  await rewritePages(folder, manifest);
  await mkdir(options.out, { recursive: true });
  console.log((await runTool('npm', ['pack', folder, '--ignore-scripts', '--pack-destination', options.out])).trim());
}

async function build(): Promise<void> {
  for (const script of ['build', 'build:lib']) await runTool('npm', ['run', '--prefix', root, script]);
}

/** Without what only serves those who work on the package. */
async function shippedManifest(manifest: Manifest): Promise<object> {
  const { scripts: _scripts, devDependencies: _dev, allowScripts: _allowed, ...shipped } = manifest;
  const imported = await importedPackages(path.join(root, 'dist/lib'));
  const needed = Object.entries(manifest.dependencies).filter(([name]) => imported.has(name));
  return { ...shipped, dependencies: Object.fromEntries(needed) };
}

async function rewritePages(folder: string, manifest: Manifest): Promise<void> {
  const files = (await readdir(folder, { recursive: true })).toSorted();
  const shipped = new Set(files);
  const home = `${repositoryPage(manifest)}/blob/v${manifest.version}`;
  for (const file of files.filter((name) => name.endsWith('.md'))) {
    const page = path.join(folder, file);
    if (!(await stat(page)).isFile()) continue;
    const text = shippedPage(await readFile(page, 'utf8'), { file, isShipped: (name) => shipped.has(name), home });
    await writeFile(page, text);
  }
}

await main();

/** The packages that the modules and declarations in a folder import. */
async function importedPackages(folder: string): Promise<Set<string>> {
  const found = new Set<string>();
  for (const file of await readdir(folder, { recursive: true })) {
    if (!/\.(js|d\.ts)$/.test(file)) continue;
    const text = await readFile(path.join(folder, file), 'utf8');
    for (const [, name = ''] of text.matchAll(/\b(?:from|import)\s*\(?\s*['"]((?:@[\w.-]+\/)?[\w.-]+)[^'"]*['"]/g)) {
      if (!name.startsWith('.')) found.add(name);
    }
  }
  return found;
}
