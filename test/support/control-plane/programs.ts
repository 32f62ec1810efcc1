import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { runBuildScript } from '../build-script.ts';

const here = import.meta.dirname;

/** The programs of a control plane, by the names they are called by. */
export const programNames = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl'] as const;

export type ProgramName = (typeof programNames)[number];

/** Which control plane. */
export interface ProgramOptions {
  /** Default: the environment of this process. */
  env?: NodeJS.ProcessEnv;
  /** Minor version, such as `1.32`. Default: that of `go.mod`, or whatever is in `KUBE_BIN_DIR`. */
  minor?: string | undefined;
}

/**
 * The folder that holds the programs: `KUBE_BIN_DIR` unless a minor version is asked for, else `kube-bin/<Kubernetes
 * version>` in the user's cache folder. Missing programs are compiled by `build.sh`, which takes minutes the first time.
 *
 * @throws for a minor version without a .mod file, and when programs are missing and cannot be compiled, such as without
 * Go.
 */
export async function findPrograms(options: ProgramOptions = {}): Promise<string> {
  const built = await builtPrograms(options);
  if (built !== undefined) return built;
  const { env = process.env, minor } = options;
  return await runBuildScript(
    join(here, 'build.sh'),
    [await modFile(minor)],
    minor === undefined ? env : { ...env, KUBE_BIN_DIR: '' },
  );
}

/** As `findPrograms`, but compiles nothing: undefined where programs are missing. */
export async function builtPrograms({ env = process.env, minor }: ProgramOptions = {}): Promise<string | undefined> {
  const given = minor === undefined ? env['KUBE_BIN_DIR'] : undefined;
  const folder = given || join(cacheFolder(env), 'kube-bin', await kubernetesVersion(minor));
  return programNames.every((name) => existsSync(join(folder, name))) ? folder : undefined;
}

function cacheFolder(env: NodeJS.ProcessEnv): string {
  return env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
}

/** The Kubernetes version that the .mod file of a minor version pins, without the leading `v`; default: of `go.mod`. */
export async function kubernetesVersion(minor?: string): Promise<string> {
  return await pinnedVersion(await modFile(minor));
}

async function pinnedVersion(file: string): Promise<string> {
  const match = /^\s*k8s\.io\/kubernetes v(\S+)$/m.exec(await readFile(join(here, file), 'utf8'));
  if (match?.[1] === undefined)
    throw new Error(`test/support/control-plane/${file} names no version of k8s.io/kubernetes`);
  return match[1];
}

async function modFile(minor: string | undefined): Promise<string> {
  if (minor === undefined) return 'go.mod';
  const files = (await readdir(here)).filter((file) => file.endsWith('.mod'));
  const versions = new Map<string, string>();
  for (const file of files) versions.set((await pinnedVersion(file)).replace(/\.[^.]*$/, ''), file);
  const found = versions.get(minor);
  if (found !== undefined) return found;
  const known = [...versions.keys()].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  throw new Error(`Kubernetes ${minor} has no .mod file in test/support/control-plane; there are ${known.join(', ')}`);
}
