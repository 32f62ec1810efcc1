/** Credentials from a program (Kubernetes page "Authenticating", "client-go credential plugins"). */
import { execFile, type ExecFileException } from 'node:child_process';
import type { Clock } from '../../base/clock.ts';
import { SecretString } from '../../base/secret-string.ts';
import { type ExecPluginConfig, KubeConfigError } from './kubeconfig-files.ts';

export interface ExecPluginOptions {
  config: ExecPluginConfig;
  /** The environment of the program; the plugin's own variables are added. */
  environment: Record<string, string | undefined>;
  /** `spec.cluster` for plugins with `provideClusterInfo`. */
  cluster: Record<string, unknown>;
  clock: Clock;
  /** Max time of one run, in milliseconds. Default 60,000. */
  timeoutMs?: number;
}

/** A token, or a certificate with its key, or both. */
export interface ExecCredential {
  token?: string | undefined;
  /** PEM. */
  certificate?: string | undefined;
  key?: string | undefined;
  /** Wall time in milliseconds; absent: never, until the server returns 401. */
  expiresAtMs?: number | undefined;
}

const versions: ReadonlySet<string> = new Set([
  'client.authentication.k8s.io/v1',
  'client.authentication.k8s.io/v1beta1',
]);
/** A plugin that hangs must not block all requests. */
const defaultTimeoutMs = 60_000;
const maxOutputBytes = 1024 * 1024;

/** One plugin and its last credentials. Runs once at a time, and again when they have expired. */
export class ExecPlugin {
  readonly #options: ExecPluginOptions;
  readonly #version: string;
  readonly #command: string;
  #credential: ExecCredential | undefined;
  #running: Promise<ExecCredential> | undefined;

  /** @throws {KubeConfigError} when the configuration cannot be used. */
  constructor(options: ExecPluginOptions) {
    const { apiVersion, command, interactiveMode } = options.config;
    this.#options = options;
    this.#version = apiVersion ?? '';
    this.#command = command ?? '';
    if (this.#command === '') {
      throw new KubeConfigError('exec plugin: no command', {
        cure: 'Set exec.command of the user in the kubeconfig file',
      });
    }
    if (!versions.has(this.#version)) {
      throw new KubeConfigError(`exec plugin ${this.#command}: invalid apiVersion ${JSON.stringify(this.#version)}`, {
        cure: `Set exec.apiVersion of the user in the kubeconfig file to one of ${[...versions].join(', ')}`,
      });
    }
    if (interactiveMode === 'Always') {
      throw new KubeConfigError(`exec plugin ${this.#command}: it requires a terminal, and there is none`, {
        cure: 'Set exec.interactiveMode of the user in the kubeconfig file to IfAvailable or Never',
      });
    }
  }

  /** The credentials, from the last run until they expire. @throws {Error} when the plugin fails. */
  async credential(): Promise<ExecCredential> {
    const { expiresAtMs = Infinity } = this.#credential ?? { expiresAtMs: -Infinity };
    if (this.#credential !== undefined && this.#options.clock.wallMs() < expiresAtMs) return this.#credential;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    this.#credential = await this.#running;
    return this.#credential;
  }

  async #run(): Promise<ExecCredential> {
    const { config, environment, cluster } = this.#options;
    const info = {
      kind: 'ExecCredential',
      apiVersion: this.#version,
      spec: { interactive: false, ...(config.provideClusterInfo === true && { cluster }) },
    };
    const variables = Object.fromEntries((config.env ?? []).map(({ name, value }) => [name, value]));
    const output = await this.#execute({ ...environment, ...variables, KUBERNETES_EXEC_INFO: JSON.stringify(info) });
    return this.#read(output);
  }

  #execute(env: Record<string, string | undefined>): Promise<string> {
    const { timeoutMs = defaultTimeoutMs, config } = this.#options;
    return new Promise((resolve, reject) => {
      const options = { env, timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: maxOutputBytes } as const;
      const end = (): void => void child.kill('SIGKILL'); // one that hangs must not outlive this process
      const child = execFile(this.#command, config.args ?? [], options, (error, stdout, stderr) => {
        process.off('exit', end);
        if (error === null) {
          resolve(stdout);
          return;
        }
        reject(new Error(`exec plugin ${this.#command}: ${this.#failure(error, stderr)}`.trim()));
      });
      process.on('exit', end);
      child.stdin?.end();
    });
  }

  /**
   * Why a run failed, without its arguments and variables, which may hold credentials. Node.js puts the whole command line into the
   * error, so that is not its cause either.
   */
  #failure(error: ExecFileException, stderr: string): string {
    const { timeoutMs = defaultTimeoutMs, config } = this.#options;
    const said = SecretString.stripped(stderr.trim(), givenValues(config));
    if (error.code === 'ENOENT') return `it was not found. ${config.installHint ?? ''}`;
    if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `its output exceeds ${maxOutputBytes} bytes`;
    if (error.killed === true) return `it did not end within ${timeoutMs} ms. ${said}`;
    if (said !== '') return said;
    if (typeof error.code === 'number') return `it ended with exit code ${error.code}`;
    return `it could not be run: ${error.signal ?? error.code ?? 'unknown error'}`;
  }

  #read(output: string): ExecCredential {
    const wrong = (why: string): Error => new Error(`exec plugin ${this.#command}: ${why}`);
    let response: Partial<ExecCredentialObject> | null;
    try {
      response = JSON.parse(output) as Partial<ExecCredentialObject> | null;
    } catch {
      throw wrong('its output is not JSON'); // without the cause: its message may quote the token
    }
    if (response?.kind !== 'ExecCredential' || response.apiVersion !== this.#version) {
      throw wrong(`its output is not an ExecCredential of ${this.#version}`);
    }
    const { token, clientCertificateData, clientKeyData, expirationTimestamp } = response.status ?? {};
    if (!clientCertificateData !== !clientKeyData) throw wrong('it gave a certificate without a key, or a key alone');
    if (!token && !clientCertificateData) throw wrong('it gave neither a token nor a certificate');
    const expiresAtMs = expirationTimestamp ? Date.parse(expirationTimestamp) : undefined;
    if (Number.isNaN(expiresAtMs)) throw wrong(`its expirationTimestamp is not a time`);
    return {
      token: token || undefined,
      certificate: clientCertificateData || undefined,
      key: clientKeyData || undefined,
      expiresAtMs,
    };
  }
}

/** What the kubeconfig hands to the program: arguments, also without the flag before `=`, and variables. */
function givenValues({ args, env }: ExecPluginConfig): SecretString[] {
  const values = (args ?? [])
    .filter((text) => !/^--?[\w-]+$/.test(text))
    .flatMap((text) => [text, text.replace(/^--?[\w-]+=/, '')]);
  return [...values, ...(env ?? []).map(({ value }) => value)].map((text) => SecretString.fromText(text));
}

/** client.authentication.k8s.io ExecCredential in JSON. */
interface ExecCredentialObject {
  kind: string;
  apiVersion: string;
  status: {
    token?: string | null;
    clientCertificateData?: string | null;
    clientKeyData?: string | null;
    expirationTimestamp?: string | null;
  } | null;
}
