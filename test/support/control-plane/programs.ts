import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const here = import.meta.dirname;

/** The programs of a control plane, by the names they are called by. */
export const programNames = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl'] as const;

export type ProgramName = (typeof programNames)[number];

/**
 * The folder that holds the programs: `KUBE_BIN_DIR`, else `kube-bin/<Kubernetes version of go.mod>` in the user's
 * cache folder. Missing programs are compiled by `build.sh`, which takes minutes the first time.
 *
 * @throws when they are missing and cannot be compiled, such as without Go.
 */
export async function findPrograms(env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const folder = env['KUBE_BIN_DIR'] || join(cacheFolder(env), 'kube-bin', await kubernetesVersion());
  if (programNames.every((name) => existsSync(join(folder, name)))) return folder;
  const { stdout } = await promisify(execFile)('bash', [join(here, 'build.sh')], { env, maxBuffer: 2 ** 26 });
  return stdout.trim();
}

function cacheFolder(env: NodeJS.ProcessEnv): string {
  return env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
}

/** The Kubernetes version that `go.mod` pins, without the leading `v`. */
export async function kubernetesVersion(): Promise<string> {
  const match = /^\s*k8s\.io\/kubernetes v(\S+)$/m.exec(await readFile(join(here, 'go.mod'), 'utf8'));
  if (match?.[1] === undefined)
    throw new Error('test/support/control-plane/go.mod names no version of k8s.io/kubernetes');
  return match[1];
}
