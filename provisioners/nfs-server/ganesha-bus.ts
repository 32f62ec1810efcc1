/** Ganesha's interface on D-Bus (nfs-ganesha wiki, "DBus interface"): exports come and go while it serves. */
import { createClient, type MessageBus } from 'dbus-native';

/** The bus itself (D-Bus specification, "Message Bus Messages"). */
const daemon = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
} as const;

const manager = {
  destination: 'org.ganesha.nfsd',
  path: '/org/ganesha/nfsd/ExportMgr',
  interface: 'org.ganesha.nfsd.exportmgr',
} as const;

/** A busy ganesha with thousands of exports reads its configuration at each call. */
const callTimeoutMs = 30_000;

/** Calls to a running ganesha, each over a connection of its own: the bus may go away and come back in between. */
export class GaneshaBus {
  readonly #socket: string;

  /** @param socket - of the bus that ganesha is on. */
  constructor(socket: string) {
    this.#socket = socket;
  }

  /** Exports what stands under the id in the configuration. @throws when ganesha refuses, or is away. */
  async addExport(configFile: string, id: number, signal: AbortSignal): Promise<void> {
    await this.#call('AddExport', 'ss', [configFile, `export(export_id = ${id})`], signal);
  }

  /** @throws when ganesha refuses, as for an id that is not exported, or is away. */
  async removeExport(id: number, signal: AbortSignal): Promise<void> {
    await this.#call('RemoveExport', 'q', [id], signal);
  }

  /** What is exported: directories by id. @throws when ganesha is away, or not ready. */
  async showExports(signal: AbortSignal): Promise<Map<number, string>> {
    const [, exports] = (await this.#call('ShowExports', '', [], signal)) as [unknown, [number, string][]];
    return new Map(exports.map(([id, path]) => [id, path]));
  }

  /** @throws when the bus does not respond. */
  async ping(signal: AbortSignal): Promise<void> {
    await this.#call('GetId', '', [], signal, daemon);
  }

  /** @returns what the call returns, one value or several. */
  async #call(
    member: string,
    signature: string,
    body: unknown[],
    signal: AbortSignal,
    called: Record<keyof typeof manager, string> = manager,
  ): Promise<unknown> {
    signal.throwIfAborted();
    const broken = Promise.withResolvers<never>();
    broken.promise.catch(() => undefined);
    // without a time-out of the library for its own greeting, which would be thrown where nobody can catch it
    const bus: MessageBus = createClient({ socket: this.#socket, authMethods: ['EXTERNAL'], timeout: 0 });
    for (const event of ['error', 'handlerError']) bus.connection.on(event, (error: Error) => broken.reject(error));
    const abort = (): void => broken.reject(new Error('no response in time', { cause: signal.reason })); // also while it connects
    signal.addEventListener('abort', abort, { once: true });
    const reply = Promise.withResolvers<unknown>();
    const message = { ...called, member, ...(signature !== '' && { signature, body }) };
    bus.invoke(message, { timeout: callTimeoutMs, signal }, (error: unknown, ...values: unknown[]) => {
      if (error === null || error === undefined) reply.resolve(values.length > 1 ? values : values[0]);
      else reply.reject(error);
    });
    try {
      return await Promise.race([reply.promise, broken.promise]);
    } catch (error) {
      throw new Error(`${member}: ${reasonOf(error)}`, { cause: error });
    } finally {
      signal.removeEventListener('abort', abort);
      reply.promise.catch(() => undefined);
      bus.connection.stream.destroy(); // a bus that hangs would never close it
    }
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  const away = (error as { dbusName?: string }).dbusName === 'org.freedesktop.DBus.Error.ServiceUnknown';
  if (away || code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ECONNCLOSED')
    return 'the NFS server is not running';
  return error.message;
}
