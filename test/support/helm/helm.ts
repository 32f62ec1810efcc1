/** The real Helm, for the tests of deploy/charts. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { KubernetesObject } from '@kubernetes/client-node';
import { loadAll } from 'js-yaml';
import { runBuildScript } from '../build-script.ts';

/** The folder with the charts of this repository. */
export const chartsFolder = join(import.meta.dirname, '../../../deploy/charts');

/** Values of a chart, as a file of them would have them. */
export type Values = Record<string, unknown>;

/** What `helm template` renders. */
export interface Rendering {
  /** Path of a chart. */
  chart: string;
  /** Default `rel`. */
  release?: string;
  /** Default `storage`. */
  namespace?: string;
  values?: Values;
  /** Default 1.33.0: otherwise it depends on the libraries of Helm. */
  kubeVersion?: string;
  flags?: readonly string[];
}

/** Helm has refused something; the message is its own. */
export class HelmError extends Error {
  override readonly name = 'HelmError';
}

/**
 * Looks for Helm: `HELM`, else the one that `build.sh` has compiled or, where there is Go, compiles now, in minutes.
 *
 * @returns undefined where neither is there.
 * @throws when it cannot be compiled.
 */
export async function findHelm(env: NodeJS.ProcessEnv = process.env): Promise<string | undefined> {
  const found = env['HELM'] || join(cacheFolder(env), 'kube-bin', `helm-${await helmVersion()}`, 'helm');
  if (existsSync(found)) return found;
  return hasGo(env) ? await runBuildScript(join(import.meta.dirname, 'build.sh'), [], env) : undefined;
}

/** The version that go.mod pins, without the leading `v`. */
export async function helmVersion(): Promise<string> {
  const match = /^\s*helm\.sh\/helm\/v3 v(\S+)/m.exec(await readFile(join(import.meta.dirname, 'go.mod'), 'utf8'));
  if (match?.[1] === undefined) throw new Error('test/support/helm/go.mod names no version of helm.sh/helm/v3');
  return match[1];
}

function cacheFolder(env: NodeJS.ProcessEnv): string {
  return env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
}

function hasGo(env: NodeJS.ProcessEnv): boolean {
  return (env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, 'go')));
}

/** Helm with folders of its own, so that nothing of the user's is read or written. */
export class Helm implements AsyncDisposable {
  readonly #program: string;
  readonly #folder: string;
  readonly #flags: readonly string[];

  private constructor(program: string, folder: string, flags: readonly string[]) {
    this.#program = program;
    this.#folder = folder;
    this.#flags = flags;
  }

  /** @param flags - of every command, such as those that say which cluster. */
  static async make(program: string, flags: readonly string[] = []): Promise<Helm> {
    return new Helm(program, await mkdtemp(join(tmpdir(), 'helm-')), flags);
  }

  /**
   * Runs a command; `values` go to its standard input, for `--values -`.
   *
   * @returns its standard output. @throws {HelmError} when it fails.
   */
  async run(args: readonly string[], values?: Values): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const given = values === undefined ? [] : ['--values', '-'];
    const child = execFile(
      this.#program,
      [...args, ...given, ...this.#flags],
      { env: this.#environment(), maxBuffer: 2 ** 26, timeout: 120_000 },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new HelmError(stderr.trim() || error.message, { cause: error }));
      },
    );
    child.stdin?.end(values === undefined ? '' : JSON.stringify(values));
    return await promise;
  }

  /** What `helm template` prints, as objects. @throws {HelmError} */
  async template({
    chart,
    release = 'rel',
    namespace = 'storage',
    values = {},
    kubeVersion = '1.33.0',
    flags = [],
  }: Rendering): Promise<KubernetesObject[]> {
    const args = ['template', release, chart, '--namespace', namespace, '--kube-version', kubeVersion, ...flags];
    return (loadAll(await this.run(args, values)) as (KubernetesObject | null)[]).filter((each) => each !== null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  #environment(): NodeJS.ProcessEnv {
    const { PATH, TMPDIR } = process.env;
    const folder = (name: string): string => join(this.#folder, name);
    return {
      PATH,
      TMPDIR,
      HOME: this.#folder,
      HELM_CACHE_HOME: folder('cache'),
      HELM_CONFIG_HOME: folder('config'),
      HELM_DATA_HOME: folder('data'),
    };
  }
}
