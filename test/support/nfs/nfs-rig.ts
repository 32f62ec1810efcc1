/** A folder to export, the provisioner as a process, and clients that read and write through NFS. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../free-ports.ts';
import { startProcess, type StartedProcess } from '../started-process.ts';
import type { NfsPrograms } from './nfs-programs.ts';
import { NfsRelay } from './nfs-relay.ts';
import { programFile } from '../program-file.ts';

const exec = promisify(execFile);
const program = programFile('nfs-provisioner');

/** Whom a client says that it is. */
export interface Credentials {
  uid: number;
  gid: number;
}

/** A client that has a new file open and its text not written yet. */
export interface HeldWrite {
  /** Lets it write, and resolves once it has ended. @returns its exit code and what it said. */
  release(): Promise<string>;
}

export class NfsRig implements AsyncDisposable {
  readonly folder: string;
  /** What is exported. */
  readonly exports: string;
  readonly port: number;
  readonly #programs: NfsPrograms & { missing?: undefined };
  readonly #started: StartedProcess[] = [];
  readonly #clients: StartedProcess[] = [];
  readonly #relays: NfsRelay[] = [];

  private constructor(
    folder: string,
    port: number,
    { exports, ...programs }: NfsPrograms & { missing?: undefined; exports?: string | undefined },
  ) {
    this.folder = folder;
    this.exports = exports ?? path.join(folder, 'export');
    this.port = port;
    this.#programs = programs;
  }

  /** @param exports - a directory that is there, to be exported. Default: a new one. */
  static async make(programs: NfsPrograms & { missing?: undefined }, exports?: string): Promise<NfsRig> {
    const folder = await mkdtemp(path.join(tmpdir(), 'nfs-'));
    const rig = new NfsRig(folder, await freePort(), { ...programs, exports });
    await mkdir(rig.exports, { recursive: true });
    await rig.writeConfig();
    return rig;
  }

  /** The configuration that the server begins with: on one port of the loopback interface, without a grace period. */
  async writeConfig(more = ''): Promise<void> {
    await writeFile(path.join(this.exports, 'vfs.conf'), this.config() + more, { mode: 0o600 });
  }

  config(): string {
    const { core, nfsV4 } = this.#programs.config;
    return `NFS_CORE_PARAM
{
	${core}
	NFS_Port = ${this.port};
	Bind_addr = 127.0.0.1;
	Protocols = 4;
	Enable_UDP = false;
	Enable_NLM = false;
	Enable_RQUOTA = false;
	MNT_Port = 20048;
}

NFSV4
{
	${nfsV4}
	Graceless = true;
	RecoveryRoot = ${this.exports};
	Only_Numeric_Owners = true;
	Grace_Period = 90;
}

EXPORT_DEFAULTS
{
	Attr_Expiration_Time = 0;
}
`;
  }

  /** Starts the provisioner outside of the cluster, beside other flags. @param options.env - further variables. */
  async start(options: {
    kubeconfig: string;
    args: readonly string[];
    path?: string;
    env?: Record<string, string>;
  }): Promise<StartedProcess> {
    const started = await startProcess({
      program: process.execPath,
      args: this.#arguments(options),
      env: { ...options.env, PATH: `${options.path === undefined ? '' : `${options.path}:`}${this.#programs.path}` },
    });
    this.#started.push(started);
    return started;
  }

  /** Runs the provisioner to its end, such as for a subcommand. @returns its standard output, whatever its exit code. */
  async run(options: { kubeconfig: string; args: readonly string[] }): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    execFile(process.execPath, this.#arguments(options), { timeout: 60_000 }, (_error, stdout) => resolve(stdout));
    return await promise;
  }

  #arguments({ kubeconfig, args }: { kubeconfig: string; args: readonly string[] }): string[] {
    return [
      program,
      ...['-kubeconfig', kubeconfig, '-server-hostname', '127.0.0.1', '-nfsv3=false', '-grace-period=0'],
      ...['-export-dir', this.exports, '-ganesha-pid', path.join(this.folder, 'ganesha.pid')],
      ...['-dbus-socket', path.join(this.folder, 'bus'), '-ganesha-log', this.#ganeshaLog, '-v=2'],
      ...args,
    ];
  }

  /** Not in the directory that is exported, which could not be mounted read-only then. */
  get #ganeshaLog(): string {
    return path.join(this.folder, 'ganesha.log');
  }

  /** What the provisioner and ganesha said, for failed tests. */
  async log(): Promise<string> {
    const ganesha = await readFile(this.#ganeshaLog, 'utf8').catch(String);
    return [...this.#started.map((each) => each.log()), ganesha.slice(-5000)].join('\n---\n');
  }

  /** Names in a folder, as a client sees them. @throws when it cannot be mounted. */
  async list(directory: string, as?: Credentials): Promise<string[]> {
    const { stdout } = await this.#client('nfs-ls', [this.#url(directory, as)]);
    const lines = stdout.split('\n').filter((line) => line !== '');
    return lines.map((line) => line.split(/\s+/).slice(5).join(' ')).sort();
  }

  async read(file: string, as?: Credentials): Promise<string> {
    return (await this.#client('nfs-cat', [this.#url(file, as)])).stdout;
  }

  /** Writes a new file through NFS; one that exists is refused. */
  async write(file: string, text: string, as?: Credentials): Promise<void> {
    await this.#client('nfs-cp', [await this.#makeSource(text), this.#url(file, as)]);
  }

  /**
   * Starts to write a new file whose write is held back: the server has made the file, and gets the text after `release`.
   *
   * @param text - less than 4 KiB, of which libnfs 4 cannot write more at once.
   */
  async startWriting(file: string, text: string, as?: Credentials): Promise<HeldWrite> {
    const source = await this.#makeSource(text);
    const relay = await NfsRelay.start(this.port, text);
    this.#relays.push(relay);
    const client = await this.#startCopy(source, this.#url(file, as, relay.port));
    const ended = client.ending().then((how) => {
      throw new Error(`the client did not write: ${how}: ${client.log()}`);
    });
    ended.catch(() => undefined);
    await Promise.race([relay.held(), ended]);
    return {
      release: async () => {
        relay.release();
        return `${await client.ending()} ${client.log()}`.trim();
      },
    };
  }

  /** Starts to copy a file of the export to a new file of this machine. */
  startReading(file: string, target: string, as?: Credentials): Promise<StartedProcess> {
    return this.#startCopy(this.#url(file, as), target);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of this.#clients) await each.stop('SIGKILL'); // one that was stopped hears nothing else
    for (const each of this.#relays) await each[Symbol.asyncDispose]();
    for (const each of this.#started) await each.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  async #makeSource(text: string): Promise<string> {
    const source = path.join(await mkdtemp(path.join(this.folder, 'source-')), 'file');
    await writeFile(source, text);
    return source;
  }

  async #startCopy(from: string, to: string): Promise<StartedProcess> {
    const { path: PATH } = this.#programs;
    const started = await startProcess({ program: 'nfs-cp', args: [from, to], env: { PATH } });
    this.#clients.push(started);
    return started;
  }

  #url(directory: string, as: Credentials = { uid: 0, gid: 0 }, port = this.port): string {
    return `nfs://127.0.0.1${directory}?version=4&nfsport=${port}&uid=${as.uid}&gid=${as.gid}`;
  }

  #client(name: string, args: string[]): Promise<{ stdout: string }> {
    return exec(name, args, { env: { ...process.env, PATH: this.#programs.path }, timeout: 30_000 });
  }
}
