import type { Logger } from '../../src/index.ts';
import type { ExportServer } from './exports.ts';
import type { GaneshaBus } from './ganesha-bus.ts';

/**
 * Ganesha as the server of exports. Its error texts differ between versions, so after a refusal it is asked what it
 * exports: what is as it should be counts as done.
 */
export function ganeshaExports({
  bus,
  configFile,
  logger,
}: {
  bus: GaneshaBus;
  configFile: string;
  logger: Logger;
}): ExportServer & Required<Pick<ExportServer, 'active'>> {
  const active = (signal: AbortSignal): Promise<ReadonlyMap<number, string>> => bus.showExports(signal);
  return {
    active,
    async activate({ id, path }, signal) {
      try {
        await bus.addExport(configFile, id, signal);
      } catch (error) {
        const exports = await active(signal).catch(() => new Map<number, string>());
        if (exports.get(id) !== path) throw error;
        logger.debug({ directory: path, exportId: id, err: error }, 'The directory is exported already');
      }
    },
    async deactivate({ id, path }, signal) {
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
