/** What `npm test` makes once, since its processes would load it hundreds of times. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { build, stop } from 'esbuild';

const root = path.join(import.meta.dirname, '../..');
const cache = path.join(root, '.cache');
const run = promisify(execFile);

/** What the programs are made from. */
const sources = ['src', 'sandbox', 'provisioners', 'proto', 'deploy', 'scripts'];

/**
 * Builds the programs that tests start, with the compiled code of the sidecar, unless those of an earlier run are made from the same
 * sources.
 *
 * @returns the folder; it has the same name in each run, since Node.js keeps the code that it compiles by the name of the file.
 */
export async function buildPrograms(): Promise<string> {
  const programs = path.join(cache, 'test-programs');
  const stamp = path.join(programs, 'made-from');
  await mkdir(programs, { recursive: true });
  const madeFrom = await hashOfSources();
  if (existsSync(stamp) && (await readFile(stamp, 'utf8')) === madeFrom) return programs;
  await rm(stamp, { force: true });
  await inNewFolder(async (made) => {
    const script = (name: string): string => path.join(root, 'scripts', name);
    await run(process.execPath, [script('build.ts'), `--out=${made}`, '--test-programs']);
    await run(process.execPath, [script('code-cache.ts'), path.join(made, 'csi-provisioner.bundle.cjs')]);
    // one by one, so that those who run in this folder at the same time find each file, and find it whole
    for (const name of await readdir(made)) await rename(path.join(made, name), path.join(programs, name));
  });
  await writeFile(stamp, madeFrom);
  return programs;
}

async function hashOfSources(): Promise<string> {
  const hash = createHash('sha256').update(process.version);
  const files = ['package.json', 'package-lock.json'];
  for (const folder of sources) {
    for (const entry of await readdir(path.join(root, folder), { recursive: true, withFileTypes: true })) {
      if (entry.isFile()) files.push(path.relative(root, path.join(entry.parentPath, entry.name)));
    }
  }
  for (const file of files.toSorted()) {
    const content = createHash('sha256').update(await readFile(path.join(root, file)));
    hash.update(`${file} ${content.digest('hex')}\n`);
  }
  return hash.digest('hex');
}

/**
 * The client of Kubernetes that comes in a thousand files, in one.
 *
 * @returns the file; it is made anew when another version is installed.
 */
export async function bundleKubernetesClient(): Promise<string> {
  const lock = await readFile(path.join(root, 'package-lock.json'));
  const name = `kubernetes-client-${createHash('sha256').update(lock).digest('hex').slice(0, 16)}.mjs`;
  const file = path.join(cache, name);
  if (existsSync(file)) return file;
  await mkdir(cache, { recursive: true });
  await inNewFolder(async (made) => {
    const outfile = path.join(made, name);
    const entry = path.join(root, 'node_modules/@kubernetes/client-node/dist/index.js');
    const require = `import { createRequire } from 'node:module'; const require = createRequire(${JSON.stringify(entry)});`;
    await build({
      entryPoints: [entry],
      outfile,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: `node${process.versions.node}`,
      minifyWhitespace: true,
      legalComments: 'none',
      banner: { js: require },
      logLevel: 'warning',
    });
    await stop(); // or its service runs on as long as this process
    await rename(outfile, file);
  });
  return file;
}

async function inNewFolder(make: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(path.join(cache, 'making-'));
  try {
    await make(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
