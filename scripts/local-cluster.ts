/** A whole small storage cluster as three processes: sandbox, hostpath driver, sidecar. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

export const driverName = 'hostpath.csi.k8s.io';

export interface LocalCluster extends AsyncDisposable {
  /** Folder of everything below; removed at the end. */
  folder: string;
  /** URL of the sandbox's API. */
  url: string;
  kubeconfig: string;
  /** Where the driver keeps its volumes, a folder each. */
  volumesFolder: string;
  /** Process ids by what they are. */
  processes: Record<string, number>;
  /** What the sidecar has logged so far. */
  sidecarLog(): string;
}

const root = path.join(import.meta.dirname, '..');

/** Starts the three and waits until they work. @throws when one of them ends at once. */
export async function startLocalCluster(
  options: { onStarted?: (what: string, pid: number) => void } = {},
): Promise<LocalCluster> {
  const folder = await mkdtemp(path.join(tmpdir(), 'csi-'));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const kubeconfig = path.join(folder, 'kubeconfig');
  const socket = path.join(folder, 'csi.sock');
  const stateDir = path.join(folder, 'state');
  const processes: Record<string, number> = {};
  const start = async (what: string, program: string, args: string[]): Promise<Child> => {
    const child = new Child(what, [path.join(root, program), ...args]);
    cleanup.use(child);
    const pid = await child.spawned();
    processes[what] = pid;
    options.onStarted?.(what, pid);
    return child;
  };
  const sandbox = await start('sandbox', 'sandbox/main.ts', [`--kubeconfig=${kubeconfig}`]);
  const { url } = JSON.parse(await sandbox.firstLine()) as { url: string };
  const driver = await start('hostpath driver', 'sandbox/hostpath/main.ts', [
    `--csi-address=${socket}`,
    `--state-dir=${stateDir}`,
    `--driver-name=${driverName}`,
  ]);
  await driver.firstLine();
  const sidecar = await start('sidecar', 'src/main.ts', [`--csi-address=${socket}`, `--kubeconfig=${kubeconfig}`]);
  await sidecar.logs('Started provisioner controller');
  const owned = cleanup.move();
  return {
    folder,
    url,
    kubeconfig,
    volumesFolder: path.join(stateDir, 'volumes'),
    processes,
    sidecarLog: () => sidecar.log,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** One process; ended with SIGTERM, and with SIGKILL when that does not help. */
class Child implements AsyncDisposable {
  log = '';
  readonly #what: string;
  readonly #process: ChildProcess;
  readonly #closed: Promise<unknown>;
  readonly #firstLine = Promise.withResolvers<string>();
  #onLog: (() => void) | undefined;

  constructor(what: string, args: string[]) {
    this.#what = what;
    const env = { ...process.env };
    delete env['KUBECONFIG']; // it would win over the flag
    this.#process = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
    this.#closed = once(this.#process, 'close');
    if (this.#process.stdout !== null) {
      createInterface({ input: this.#process.stdout }).once('line', (line) => this.#firstLine.resolve(line));
    }
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.log += text;
      this.#onLog?.();
    });
  }

  async spawned(): Promise<number> {
    if (this.#process.pid === undefined) await once(this.#process, 'spawn');
    return this.#process.pid ?? 0;
  }

  firstLine(): Promise<string> {
    return this.#orEnd(this.#firstLine.promise);
  }

  /** Waits for a text in the log. */
  logs(text: string): Promise<void> {
    return this.#orEnd(
      new Promise((resolve) => {
        this.#onLog = () => {
          if (this.log.includes(text)) resolve();
        };
        this.#onLog();
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) this.#process.kill('SIGTERM');
    const late = setTimeout(() => this.#process.kill('SIGKILL'), 10_000);
    await this.#closed;
    clearTimeout(late);
  }

  #orEnd<T>(wanted: Promise<T>): Promise<T> {
    const ended = this.#closed.then(() => {
      throw new Error(`the ${this.#what} ended with code ${this.#process.exitCode ?? '?'}:\n${this.log}`);
    });
    return Promise.race([wanted, ended]);
  }
}
