import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A copy of the checkout in which sources are changed and tests run. */
export interface WorkingCopy {
  folder: string;
  /** For the files that tests make. */
  temporary: string;
  /** Programs that contain none of the sources that are changed, as bundles: they start with less CPU. The others run from sources. */
  programs: string;
}

/** Sources of programs, which tests start by the names in `test/support/program-file.ts`. */
const fromSources = {
  'csi-provisioner.js': 'src/main.ts',
  'nfs-provisioner.js': 'provisioners/nfs-server/main.ts',
  'nfs-subdir-external-provisioner.js': 'provisioners/nfs-subdir/main.ts',
  'kubectl-csi.cjs': 'src/cli/plugin/plugin-main.ts',
  'csi-sandbox.js': 'sandbox/csi-sandbox.js',
};

/** @returns files of the checkout that git does not ignore, with paths from the root. */
export async function filesOf(root: string): Promise<string[]> {
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'];
  const { stdout } = await run('git', list, { cwd: root, maxBuffer: 2 ** 26 });
  return stdout.split('\0').filter((name) => name !== '');
}

/** @param parent - an empty folder, with a short name: sockets are in it, too. */
export async function makeCopy(root: string, parent: string, signal: AbortSignal): Promise<WorkingCopy> {
  const copy = {
    folder: path.join(parent, 'copy'),
    temporary: path.join(parent, 'tmp'),
    programs: path.join(parent, 'programs'),
  };
  for (const folder of Object.values(copy)) await mkdir(folder);
  for (const file of await filesOf(root)) await cp(path.join(root, file), path.join(copy.folder, file));
  await symlink(path.join(root, 'node_modules'), path.join(copy.folder, 'node_modules'));
  const build = [path.join(copy.folder, 'scripts/build.ts'), `--out=${copy.programs}`, '--test-programs'];
  await run(process.execPath, [...build, 'sandbox', 'hostpath-driver'], { cwd: copy.folder, signal });
  for (const [name, source] of Object.entries(fromSources)) {
    await writeFile(path.join(copy.programs, name), `import(${JSON.stringify(path.join(copy.folder, source))});\n`);
  }
  return copy;
}

/** Of all that decides which sources a test reaches, but the test files themselves. */
export async function hashOfSources(root: string): Promise<string> {
  const hash = createHash('sha256');
  for (const file of (await filesOf(root)).toSorted()) {
    if (!/^(src|sandbox|provisioners|proto|test)\/|^package-lock\.json$/.test(file) || file.endsWith('.test.ts'))
      continue;
    hash
      .update(file)
      .update('\0')
      .update(await readFile(path.join(root, file)));
  }
  return hash.digest('hex');
}
