import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';

/**
 * Puts an `xfs_quota` on the path that writes what it is told to the file `calls` in the folder, and to `course` when it begins and
 * ends. It fails while there is a file `broken`, and waits while there is a file `hanging`.
 *
 * @returns what removes it from the path.
 */
export async function installXfsQuota(folder: string): Promise<() => void> {
  const script = [
    '#!/bin/sh',
    '[ "$1" = -V ] && exit 0',
    `cd ${folder}`,
    'echo "$@" >> calls',
    'echo begun >> course',
    '[ -e broken ] && { echo no such project >&2; exit 1; }',
    'while [ -e hanging ]; do sleep 0.01; done',
    'echo ended >> course',
  ];
  const bin = path.join(folder, 'bin');
  await mkdir(bin);
  await writeFile(path.join(bin, 'xfs_quota'), `${script.join('\n')}\n`);
  await chmod(path.join(bin, 'xfs_quota'), 0o755);
  const oldPath = process.env['PATH'];
  process.env['PATH'] = `${bin}:${oldPath ?? ''}`;
  return () => {
    process.env['PATH'] = oldPath;
  };
}

/**
 * Writes a file like `/proc/self/mountinfo`.
 *
 * @param options.mount - file system, device and options; empty: nothing is mounted there. Default: XFS with project quota.
 * @returns its path.
 */
export async function xfsMount(
  folder: string,
  { mountPoint, mount = 'xfs /dev/sdb rw,prjquota' }: { mountPoint: string; mount?: string },
): Promise<string> {
  const mountInfo = path.join(folder, 'mountinfo');
  const root = '22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n';
  await writeFile(mountInfo, `${root}${mount === '' ? '' : `36 22 8:16 / ${mountPoint} rw shared:1 - ${mount}\n`}`);
  return mountInfo;
}
