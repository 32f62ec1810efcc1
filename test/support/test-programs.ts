/** What `npm test` makes once, since its processes would load it hundreds of times. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

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
    await run(process.execPath, [script('build.ts'), `--out=${made}`]);
    await run(process.execPath, [script('code-cache.ts'), path.join(made, 'csi-provisioner.bundle.cjs')]);
    // one by one, so that those who run in this folder at the same time find each file, and find it whole
    for (const name of await readdir(made)) await rename(path.join(made, name), path.join(programs, name));
  });
  return programs;
}

async function inNewFolder(make: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(path.join(cache, 'making-'));
  try {
    await make(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
