import { startProcess, type StartedProcess } from './started-process.ts';
import { programFile } from './program-file.ts';

/** Starts nfs-subdir-external-provisioner. */
export async function startNfsSubdir(
  environment: Record<string, string | undefined>,
  args: readonly string[] = [],
): Promise<StartedProcess> {
  return await startProcess({
    program: process.execPath,
    args: [programFile('nfs-subdir-external-provisioner'), ...args],
    env: {
      ...Object.fromEntries(
        ['NFS_SERVER', 'NFS_PATH', 'PROVISIONER_NAME', 'POD_NAMESPACE'].map((name) => [name, undefined]),
      ),
      ...environment,
    },
  });
}
