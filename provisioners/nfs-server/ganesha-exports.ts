import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../src/index.ts';
import type { ExportServer } from './exports.ts';
import type { ExportEntry } from './ganesha-config.ts';
import type { GaneshaBus } from './ganesha-bus.ts';

/** How long ganesha may take to read thousands of exports, and how often it is asked meanwhile, in milliseconds. */
const rereadTimeoutMs = 120_000;
const rereadPollMs = 200;

/**
 * Ganesha as the server of exports. Its error texts differ between versions, so after a refusal it is asked what it
 * exports: what is as it should be counts as done.
 */
export function ganeshaExports({
  bus,
  configFile,
  hangUp,
  logger,
}: {
  bus: GaneshaBus;
  /** The file in which ganesha finds the exports. */
  configFile: () => string;
  /** Sends ganesha the signal to read its exports again; undefined if ganesha is not ours. */
  hangUp: (() => void) | undefined;
  logger: Logger;
}): ExportServer & Required<Pick<ExportServer, 'active'>> {
  const active = (signal: AbortSignal): Promise<ReadonlyMap<number, string>> => bus.showExports(signal);
  const reread = async (last: ExportEntry, signal: AbortSignal): Promise<void> => {
    const late = AbortSignal.any([signal, AbortSignal.timeout(rereadTimeoutMs)]);
    hangUp?.();
    while ((await active(late)).get(last.id) !== last.path) await delay(rereadPollMs, undefined, { signal: late });
  };
  return {
    active,
    ...(hangUp !== undefined && { reread }),
    async activate({ id, path }, signal) {
      try {
        await bus.addExport(configFile(), id, signal);
      } catch (error) {
        const exports = await active(signal).catch(() => new Map<number, string>());
        if (exports.get(id) !== path) throw error;
        logger.debug({ directory: path, exportId: id, err: error }, 'The directory is exported already');
      }
    },
    async deactivate({ id, path }, signal) {
      const before = await active(signal).catch(() => undefined);
      if (before?.has(id) === true && before.get(id) !== path) return; // the id is that of an administrator's export
      try {
        await bus.removeExport(id, signal);
      } catch (error) {
        const exports = await active(signal).catch(() => undefined);
        if (exports === undefined || exports.get(id) === path) throw error;
        logger.debug({ directory: path, exportId: id, err: error }, 'The directory is not exported any more');
      }
    },
  };
}
