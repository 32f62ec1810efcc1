/** What `npm test` makes once, since its processes would load it hundreds of times. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';

const root = path.join(import.meta.dirname, '../..');
const cache = path.join(root, '.cache');
const run = promisify(execFile);

/**
 * Builds the programs that tests start, with the compiled code of the sidecar.
 *
 * @returns the folder; it has the same name in each run, since Node.js keeps the code that it compiles by the name of the file.
 */
export async function buildPrograms(): Promise<string> {
  const programs = path.join(cache, 'test-programs');
  await mkdir(programs, { recursive: true });
  await inNewFolder(async (made) => {
    const script = (name: string): string => path.join(root, 'scripts', name);
    await run(process.execPath, [script('build.ts'), `--out=${made}`, '--test-programs']);
    await run(process.execPath, [script('code-cache.ts'), path.join(made, 'csi-provisioner.bundle.cjs')]);
    // one by one, so that those who run in this folder at the same time find each file, and find it whole
    for (const name of await readdir(made)) await rename(path.join(made, name), path.join(programs, name));
  });
  return programs;
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
