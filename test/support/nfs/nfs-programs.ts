/** NFS-Ganesha and the clients of libnfs: those of the machine, else Debian's, unpacked into the cache and not installed. */
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const exec = promisify(execFile);
const packages = ['nfs-ganesha', 'nfs-ganesha-vfs', 'libnfs-utils', 'dbus-daemon', 'xfsprogs'];
const programs = ['ganesha.nfsd', 'nfs-ls', 'nfs-cat', 'nfs-cp', 'dbus-daemon', 'setpriv', 'prlimit'];
const cache = path.join(homedir(), '.cache/nfs-ganesha');
const kernelCache = path.join(homedir(), '.cache/nfs-kernel-server');

/** Where the programs are, or why there are none. */
export type NfsPrograms =
  | {
      readonly missing?: undefined;
      /** For the environment variable. */
      readonly path: string;
      /** To be put into the blocks of ganesha's configuration. */
      readonly config: { readonly core: string; readonly nfsV4: string };
    }
  | { readonly missing: string };

let found: Promise<NfsPrograms> | undefined;

/** Looks for the programs, and downloads them once. What is missing is said on standard error, loudly. */
export function findNfsPrograms(): Promise<NfsPrograms> {
  found ??= look().then((result) => {
    if (result.missing !== undefined) console.error(`\n*** NFS IS NOT TESTED: ${result.missing} ***\n`);
    return result;
  });
  return found;
}

/**
 * Looks for the `exportfs` of the kernel's NFS server, and downloads it once; it runs without the server.
 *
 * @returns what to put before `PATH`, or why there is none.
 */
export async function findExportfs(): Promise<{ path: string } | { missing: string }> {
  if (process.getuid?.() !== 0) return { missing: 'exportfs needs root' };
  const installed = process.env['PATH'] ?? '';
  if (await hasAll(installed, ['exportfs'])) return { path: installed };
  try {
    await exec('stat', [kernelCache]).catch(() => unpack(kernelCache, ['nfs-kernel-server']));
  } catch (error) {
    return { missing: `exportfs is not installed, and could not be downloaded: ${String(error)}` };
  }
  return { path: `${kernelCache}/bin${path.delimiter}${installed}` };
}

async function look(): Promise<NfsPrograms> {
  if (process.getuid?.() !== 0) return { missing: 'ganesha opens files by handle, which only root may' };
  const installed = process.env['PATH'] ?? '';
  if (await hasAll(installed)) return { path: installed, config: { core: '', nfsV4: '' } };
  try {
    await exec('stat', [cache]).catch(() => unpack(cache, packages));
  } catch (error) {
    return { missing: `ganesha is not installed, and could not be downloaded: ${String(error)}` };
  }
  const all = `${cache}/bin${path.delimiter}${installed}`;
  if (!(await hasAll(all))) return { missing: `one of ${programs.join(', ')} is missing` };
  const [libraries = ''] = await libraryFolders(path.join(cache, 'root'));
  const idmapping = path.join(cache, 'idmapd.conf');
  return {
    path: all,
    config: { core: `Plugins_Dir = ${libraries}/ganesha;`, nfsV4: `IdmapConf = ${idmapping};` },
  };
}

async function hasAll(searchPath: string, wanted: readonly string[] = programs): Promise<boolean> {
  const folders = searchPath.split(path.delimiter);
  const isThere = async (program: string): Promise<boolean> => {
    for (const folder of folders) if (await stat(path.join(folder, program)).catch(() => undefined)) return true;
    return false;
  };
  return (await Promise.all(wanted.map(isThere))).every(Boolean);
}

/** Downloads the packages and what they need, with lists of our own, so that nothing of the machine changes. */
async function unpack(target: string, wanted: readonly string[]): Promise<void> {
  await mkdir(path.dirname(target), { recursive: true });
  const folder = await mkdtemp(`${target}-`);
  try {
    const lists = path.join(folder, 'lists');
    const archives = path.join(folder, 'archives');
    for (const each of [lists, archives]) await mkdir(path.join(each, 'partial'), { recursive: true });
    const options = [`Dir::State::lists=${lists}`, `Dir::Cache::archives=${archives}`, 'Debug::NoLocking=1'];
    const apt = async (...args: string[]): Promise<unknown> =>
      exec('apt-get', [...options.flatMap((option) => ['-o', option]), ...args], { maxBuffer: 2 ** 26 });
    await apt('update');
    await apt('install', '--yes', '--no-install-recommends', '--download-only', ...wanted);
    const root = path.join(folder, 'root');
    for (const name of await readdir(archives)) {
      if (name.endsWith('.deb')) await exec('dpkg', ['-x', path.join(archives, name), root]);
    }
    for (const each of [lists, archives]) await rm(each, { recursive: true });
    await writeStarters(folder, target);
    await rename(folder, target);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/** Starters that let the programs find their libraries, and the plugin that ganesha's library for names looks for in /usr. */
async function writeStarters(folder: string, target: string): Promise<void> {
  const root = path.join(target, 'root'); // where it will be
  const folders = (await libraryFolders(path.join(folder, 'root'))).map((each) => each.replace(folder, target));
  await mkdir(path.join(folder, 'bin'));
  for (const place of ['usr/bin', 'usr/sbin', 'sbin']) {
    for (const name of await readdir(path.join(folder, 'root', place)).catch(() => [])) {
      const starter = path.join(folder, 'bin', name);
      const program = path.join(root, place, name);
      await writeFile(starter, `#!/bin/sh\nLD_LIBRARY_PATH=${folders.join(':')} exec ${program} "$@"\n`);
      await chmod(starter, 0o755);
    }
  }
  const plugin = `../../../../..${folders[0] ?? ''}/libnfsidmap/nsswitch`;
  await writeFile(
    path.join(folder, 'idmapd.conf'),
    `[General]\nDomain = localdomain\n[Translation]\nMethod = ${plugin}\n`,
  );
}

/** First the folder of the machine's architecture, then that of ganesha's own library. */
async function libraryFolders(root: string): Promise<string[]> {
  const names = await readdir(path.join(root, 'usr/lib'));
  const architecture = names.find((name) => name.endsWith('-linux-gnu')) ?? '';
  return [path.join(root, 'usr/lib', architecture), path.join(root, 'usr/lib/ganesha')];
}
