/** Our own NFS server: ganesha with the bus that it listens on and, for NFSv3, rpcbind and rpc.statd. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Logger } from '../../src/index.ts';
import { AtomicFile } from './atomic-file.ts';
import { isUnwritable } from './exports-file.ts';
import type { GaneshaBus } from './ganesha-bus.ts';
import { defaultConfig, repaired, withServerSettings } from './ganesha-config.ts';
import type { Settings } from './settings.ts';
import { SupervisedProcess } from './supervised-process.ts';

const exec = promisify(execFile);

/** Open files that ganesha may have; each file that a client uses is one. */
const openFiles = 1_048_576;

/** Only root, as whom we and ganesha run, may use the bus. */
const busConfig = (socket: string): string => `<busconfig>
  <type>system</type>
  <listen>unix:path=${socket}</listen>
  <auth>EXTERNAL</auth>
  <policy user="root">
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
`;

/**
 * The configuration with the settings of the command line in it; that of a first start if there is none. One that is damaged is
 * repaired: complete blocks stay, a copy of the file is kept.
 *
 * @returns the file and what it is to contain; `copy` is for ganesha while the file cannot be written.
 */
export async function prepareConfig(
  settings: Settings,
  logger: Logger,
): Promise<{ file: AtomicFile; text: string; copy: AtomicFile }> {
  const { paths, nfsV3 } = settings;
  const file = new AtomicFile(paths.config);
  const found = await file.read();
  const defaults = { recoveryRoot: paths.exportDirectory, nfsV3 };
  const text = found ?? defaultConfig(defaults);
  const whole = repaired(text, defaults);
  if (whole !== undefined) {
    const copy = `${paths.config}.damaged`;
    await new AtomicFile(copy).write(text).catch((err: unknown) => {
      if (!isUnwritable(err)) throw err;
      logger.warn({ copy, err }, 'The damaged configuration could not be copied');
    });
    logger.error(
      { file: paths.config, copy },
      'The configuration of ganesha is damaged; only its complete blocks are used, and exports of PersistentVolumes are restored',
    );
  }
  const copy = new AtomicFile(path.join(path.dirname(paths.busSocket), 'nfs-provisioner-ganesha.conf'));
  return { file, text: withServerSettings(whole ?? text, settings), copy };
}

/** The programs of an NFS server, all of them supervised. Disposing it ends them, ganesha first. */
export class NfsServer implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack;
  readonly #ganesha: SupervisedProcess;

  private constructor(stack: AsyncDisposableStack, ganesha: SupervisedProcess) {
    this.#stack = stack;
    this.#ganesha = ganesha;
  }

  /**
   * Starts everything, and does not wait for it: an export that has to wait for the server waits in `whenReady`.
   *
   * @param options.onReady - called after each start of ganesha, once it responds.
   */
  static async start(options: {
    settings: Settings;
    bus: GaneshaBus;
    /** Called before each start of ganesha. @returns the path of its configuration. */
    prepareStart: () => Promise<string>;
    onReady: () => void;
    /** Whether a restart of a silent ganesha may help: not while it waits for its disk. */
    mayRestart: () => Promise<boolean>;
    logger: Logger;
  }): Promise<NfsServer> {
    const { settings, bus, prepareStart, onReady, mayRestart, logger } = options;
    const liveness = settings.probe && { ...settings.probe, mayKill: mayRestart };
    const { paths, nfsV3 } = settings;
    await using stack = new AsyncDisposableStack();
    const helpers = nfsV3 ? await startRpcHelpers(logger) : [];
    for (const helper of helpers) stack.use(helper);
    const busDaemon = stack.use(startBus(paths.busSocket, { bus, probe: settings.probe, logger }));
    const required = [...helpers, busDaemon];
    const fileLimit = await raisedFileLimit(logger);
    let config = paths.config;
    const ganesha = new SupervisedProcess({
      name: 'ganesha',
      command: () => [
        ...fileLimit,
        ...(['ganesha.nfsd', '-F', '-L', paths.log, '-p', paths.pid, '-f', config] as const),
      ],
      environment: { DBUS_SYSTEM_BUS_ADDRESS: `unix:path=${paths.busSocket}` },
      prepare: async () => {
        await Promise.all(required.map((each) => each.whenReady())); // without its bus ganesha ends at once
        config = await prepareStart();
      },
      probe: async (signal) => {
        await bus.showExports(signal);
      },
      liveness,
      onReady,
      lastWords: () => lastProblems(paths.log),
      logger,
    });
    stack.use(ganesha);
    return new NfsServer(stack.move(), ganesha);
  }

  /** Whether ganesha responds now. */
  get isReady(): boolean {
    return this.#ganesha.isReady;
  }

  /** Why ganesha does not respond, for people; undefined while it does, and before its first start. */
  get problem(): string | undefined {
    return this.#ganesha.problem;
  }

  /** @throws when ganesha does not respond until the signal ends the wait. */
  async whenReady(signal: AbortSignal): Promise<void> {
    if (this.isReady) return;
    signal.throwIfAborted();
    const ended = Promise.withResolvers<never>();
    const end = (): void =>
      ended.reject(new Error('the NFS server is not running; it will be restarted automatically'));
    signal.addEventListener('abort', end, { once: true });
    try {
      await Promise.race([this.#ganesha.whenReady(), ended.promise]);
    } finally {
      signal.removeEventListener('abort', end);
    }
  }

  /** Has ganesha read its exports again. */
  hangUp(): void {
    this.#ganesha.kill('SIGHUP');
  }

  /** How often ganesha was started after the first time. */
  get restarts(): number {
    return this.#ganesha.restarts;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** The last lines of ganesha's log that are about failures. */
async function lastProblems(log: string): Promise<string> {
  const text = await readFile(log, 'utf8').catch(() => '');
  const lines = text.slice(-20_000).split('\n');
  return lines
    .filter((line) => /:(?:CRIT|FATAL|MAJ) :/.test(line))
    .slice(-4)
    .map((line) => line.replace(/^.*? :(?=[A-Z ]+:[A-Z]+ :)/, ''))
    .join('\n');
}

function startBus(
  socket: string,
  { bus, probe, logger }: { bus: GaneshaBus; probe: Settings['probe']; logger: Logger },
): SupervisedProcess {
  const config = path.join(path.dirname(socket), 'nfs-provisioner-bus.conf');
  return new SupervisedProcess({
    name: 'dbus-daemon',
    command: ['dbus-daemon', `--config-file=${config}`, '--nofork', '--nopidfile'],
    prepare: async () => {
      await mkdir(path.dirname(socket), { recursive: true });
      await writeFile(config, busConfig(socket));
    },
    probe: (signal) => bus.ping(signal),
    liveness: probe && { ...probe, mayKill: () => Promise.resolve(true) },
    logger,
  });
}

/** Rpcbind unless one runs already, such as that of the node in a Pod with its network, and rpc.statd. */
async function startRpcHelpers(logger: Logger): Promise<SupervisedProcess[]> {
  const responds = async (): Promise<void> => {
    await exec('rpcinfo', ['127.0.0.1']);
  };
  const isThere = await responds().then(
    () => true,
    () => false,
  );
  const rpcbind = isThere
    ? []
    : [new SupervisedProcess({ name: 'rpcbind', command: ['rpcbind', '-f', '-w'], probe: responds, logger })];
  const prepare = async (): Promise<void> => {
    await rpcbind[0]?.whenReady();
  };
  const command = ['rpc.statd', '--foreground', '--port', '662'] as const;
  return [...rpcbind, new SupervisedProcess({ name: 'rpc.statd', command, prepare, logger })];
}

/** What to put before a command so that it may open more files than we: Node.js cannot change its own limit. */
async function raisedFileLimit(logger: Logger): Promise<[string, ...string[]] | []> {
  const prefix = ['prlimit', `--nofile=${openFiles}:${openFiles}`, '--'] as const;
  const [program, ...args] = prefix;
  try {
    await exec(program, [...args, 'true']);
    return [...prefix];
  } catch (err) {
    const cure = 'add the capability SYS_RESOURCE to the container';
    logger.warn({ err, cure }, 'The limit of open files could not be raised for ganesha');
    return [];
  }
}
