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

const buildScript = join(import.meta.dirname, 'build.sh');

/** Major versions of Helm that go.mod pins. */
export type HelmMajor = 3 | 4;

/** @returns the program of `HELM`, else the one that `build.sh` has compiled; undefined where neither is there. */
export async function findHelm(major: HelmMajor, env: NodeJS.ProcessEnv = process.env): Promise<string | undefined> {
  const found = env['HELM'] || join(cacheFolder(env), 'kube-bin', `helm-${await helmVersion(major)}`, 'helm');
  return existsSync(found) ? found : undefined;
}

/** As `findHelm`, but compiles a missing one, in minutes. @returns undefined where there is no Go. @throws when that fails. */
export async function findOrCompileHelm(
  major: HelmMajor,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string | undefined> {
  return (
    (await findHelm(major, env)) ?? (hasGo(env) ? await runBuildScript(buildScript, [String(major)], env) : undefined)
  );
}

/** The version that go.mod pins, without the leading `v`. */
export async function helmVersion(major: HelmMajor): Promise<string> {
  const module = `helm.sh/helm/v${major}`;
  const match = new RegExp(`^\\s*${module} v(\\S+)`, 'm').exec(
    await readFile(join(import.meta.dirname, 'go.mod'), 'utf8'),
  );
  if (match?.[1] === undefined) throw new Error(`test/support/helm/go.mod names no version of ${module}`);
  return match[1];
}

function cacheFolder(env: NodeJS.ProcessEnv): string {
  return env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
}

function hasGo(env: NodeJS.ProcessEnv): boolean {
  return (env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, 'go')));
}

/** Helm with folders of its own, made by its first command, so that nothing of the user's is read or written. */
export class Helm implements AsyncDisposable {
  readonly #program: string;
  readonly #flags: readonly string[];
  #folder: Promise<string> | undefined;

  /** @param flags - of every command, such as those that say which cluster. */
  constructor(program: string, flags: readonly string[] = []) {
    this.#program = program;
    this.#flags = flags;
  }

  /**
   * Runs a command; `values` go to its standard input, for `--values -`.
   *
   * @returns its standard output. @throws {HelmError} when it fails.
   */
  async run(args: readonly string[], values?: Values): Promise<string> {
    this.#folder ??= mkdtemp(join(tmpdir(), 'helm-'));
    const env = environmentIn(await this.#folder);
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const given = values === undefined ? [] : ['--values', '-'];
    const child = execFile(
      this.#program,
      [...args, ...given, ...this.#flags],
      { env, maxBuffer: 2 ** 26, timeout: 120_000 },
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
    if (this.#folder !== undefined) await rm(await this.#folder, { recursive: true, force: true });
  }
}

function environmentIn(home: string): NodeJS.ProcessEnv {
  const { PATH, TMPDIR } = process.env;
  const folder = (name: string): string => join(home, name);
  return {
    PATH,
    TMPDIR,
    HOME: home,
    HELM_CACHE_HOME: folder('cache'),
    HELM_CONFIG_HOME: folder('config'),
    HELM_DATA_HOME: folder('data'),
  };
}
