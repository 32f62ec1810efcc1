import path from 'node:path';
import { startProcess, type StartedProcess } from './started-process.ts';

const root = path.join(import.meta.dirname, '../..');

/** Starts nfs-subdir-external-provisioner from its sources. */
export async function startNfsSubdir(
  environment: Record<string, string | undefined>,
  args: readonly string[] = [],
): Promise<StartedProcess> {
  return await startProcess({
    program: process.execPath,
    args: [path.join(root, 'provisioners/nfs-subdir/main.ts'), ...args],
    env: {
      ...Object.fromEntries(
        ['NFS_SERVER', 'NFS_PATH', 'PROVISIONER_NAME', 'POD_NAMESPACE'].map((name) => [name, undefined]),
      ),
      ...environment,
    },
  });
}
