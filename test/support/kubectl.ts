import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { kubernetesVersion } from './control-plane/programs.ts';

/** The kubectl of the control plane that the tests know, or undefined where it was never compiled. */
export async function findKubectl(env: NodeJS.ProcessEnv = process.env): Promise<string | undefined> {
  const cache = env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  const folder = env['KUBE_BIN_DIR'] || join(cache, 'kube-bin', await kubernetesVersion());
  const program = join(folder, 'kubectl');
  return existsSync(program) ? program : undefined;
}

/** Runs kubectl. @returns what it printed. @throws with kubectl's error text when it fails. */
export async function runKubectl(kubectl: string, args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(kubectl, args);
  return stdout;
}

/** What `kubectl kustomize` makes of a folder, as YAML. @throws with kubectl's error text when it cannot. */
export async function kustomize(kubectl: string, folder: string): Promise<string> {
  return await runKubectl(kubectl, ['kustomize', folder]);
}
