/** The exports together with the server that serves them: our own ganesha, one that others run, or the kernel. */
import type { Logger } from '../../src/index.ts';
import { AtomicFile } from './atomic-file.ts';
import { Exports } from './exports.ts';
import { UsageError } from './flags.ts';
import { GaneshaBus } from './ganesha-bus.ts';
import { exportBlock, exportsIn, isWhole } from './ganesha-config.ts';
import { ganeshaExports } from './ganesha-exports.ts';
import { kernelFormat, kernelServer } from './kernel-exports.ts';
import { NfsServer, prepareConfig } from './nfs-server.ts';
import type { Settings } from './settings.ts';
import type { VolumeDirectories } from './volume-directory.ts';

/** How long a new volume waits for the NFS server, which needs a second or two for a start. */
const servingPatienceMs = 15_000;
/** With thousands of exports ganesha needs a while for each that it has lost. */
const reconcileTimeoutMs = 600_000;

/** Disposing it ends what it started. */
export interface Serving extends AsyncDisposable {
  readonly exports: Exports;
  /** Whether the server responds; always of one that is not ours. */
  readonly isReady: boolean;
  readonly restarts: number;
  /** Why a server of our own does not respond, for people; undefined while it does, and before its first start. */
  readonly problem: string | undefined;
  /** Resolves once the server responds. @throws when it does not within 15 s. */
  whenReady(signal: AbortSignal): Promise<void>;
}

interface ServingOptions {
  directories: VolumeDirectories;
  /** As in `ExportsOptions`. */
  isTaken: (id: number) => boolean;
  /** As in `ExportsOptions`. */
  onEdited: () => void;
  /** As in `NfsServer.start`. */
  mayRestart: () => Promise<boolean>;
  /** Called each time that a server of our own serves all exports again. */
  onServing: () => void;
  logger: Logger;
}

/** @throws {UsageError} when a file is missing that a server of others has to have. */
export async function startServing(settings: Settings, options: ServingOptions): Promise<Serving> {
  const { mode, paths, exportSubnet } = settings;
  const { isTaken, onEdited, logger } = options;
  if (mode === 'kernel') {
    const file = await existing(new AtomicFile(paths.kernelExports, 0o644));
    const format = kernelFormat(exportSubnet);
    return foreign(await Exports.open({ file, format, server: kernelServer, isTaken, onEdited, logger }));
  }
  if (exportSubnet !== '*') logger.warn({ exportSubnet }, '-export-subnet has no effect with ganesha');
  const isOwn = mode === 'own-ganesha';
  const config = isOwn ? await prepareConfig(settings, logger) : { file: await existing(new AtomicFile(paths.config)) };
  const bus = new GaneshaBus(paths.busSocket);
  const own: { server?: NfsServer } = {};
  const hangUp = isOwn ? () => own.server?.hangUp() : undefined;
  const server = ganeshaExports({ bus, configFile: () => exports.path, hangUp, logger });
  const format = { write: exportBlock, read: exportsIn, isWhole };
  const exports: Exports = await Exports.open({ ...config, format, server, isTaken, onEdited, logger });
  return isOwn
    ? startOwn(settings, { ...options, bus, exports, onStarted: (started) => (own.server = started) })
    : foreign(exports);
}

async function startOwn(
  settings: Settings,
  options: ServingOptions & { bus: GaneshaBus; exports: Exports; onStarted: (server: NfsServer) => void },
): Promise<Serving> {
  const { directories, onServing, onStarted, mayRestart, bus, exports, logger } = options;
  const reconcile = async (): Promise<void> => {
    try {
      await exports.reconcile(directories, AbortSignal.timeout(reconcileTimeoutMs));
    } catch (err) {
      logger.warn({ err }, 'The exports could not be compared with what the NFS server serves');
    }
    onServing();
  };
  const onReady = (): void => void reconcile();
  const prepareStart = (): Promise<string> => exports.prepare(AbortSignal.timeout(reconcileTimeoutMs));
  const server = await NfsServer.start({ settings, bus, prepareStart, onReady, mayRestart, logger });
  onStarted(server);
  return {
    exports,
    get isReady() {
      return server.isReady;
    },
    get restarts() {
      return server.restarts;
    },
    get problem() {
      return server.problem;
    },
    whenReady: (signal) => server.whenReady(AbortSignal.any([signal, AbortSignal.timeout(servingPatienceMs)])),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

function foreign(exports: Exports): Serving {
  const nothing = (): Promise<void> => Promise.resolve();
  return {
    exports,
    isReady: true,
    restarts: 0,
    problem: undefined,
    whenReady: nothing,
    [Symbol.asyncDispose]: nothing,
  };
}

async function existing(file: AtomicFile): Promise<AtomicFile> {
  if ((await file.read()) !== undefined) return file;
  throw new UsageError(`${file.path} does not exist: the NFS server, which is not started here, has to create it`);
}
