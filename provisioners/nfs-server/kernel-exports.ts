/** The NFS server of the kernel: exports are listed in /etc/exports, and `exportfs -r` has it read them. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { ExportServer } from './exports.ts';
import type { ExportFormat } from './exports-file.ts';

const exec = promisify(execFile);

/**
 * Lines such as `/export/pvc-1 *(rw,insecure,no_root_squash,fsid=1)`, as the original writes them.
 *
 * @param subnet - the clients that may mount (exports(5), "Machine Name Formats").
 */
export function kernelFormat(subnet: string): ExportFormat {
  return {
    write: ({ id, path, squash }) => {
      const root = squash === 'root_id_squash' ? 'root_squash' : 'no_root_squash';
      return `\n${path} ${subnet}(rw,insecure,${root},fsid=${id})\n`;
    },
    read: (file) =>
      [...file.matchAll(/(?:^\n)?^(\/\S*) \S*\(([^)\n]*\bfsid=(\d+)[^)\n]*)\)[^\n]*\n?/gm)].map(
        ([text, path = '', options = '', id = '']) => ({
          id: Number(id),
          path,
          squash: /(?:^|,)root_squash(?:,|$)/.test(options) ? 'root_id_squash' : 'no_root_squash',
          text,
        }),
      ),
  };
}

/** @throws when `exportfs` fails, with what it says. */
async function exportAll(signal: AbortSignal): Promise<void> {
  try {
    await exec('exportfs', ['-r'], { signal });
  } catch (error) {
    const { stderr = '' } = error as { stderr?: string };
    throw new Error(`exportfs -r failed: ${stderr.trim() === '' ? String(error) : stderr.trim()}`, { cause: error });
  }
}

/** What stands in the file is exported. */
export const kernelServer: ExportServer = {
  activate: (_entry, signal) => exportAll(signal),
  deactivate: () => Promise.resolve(), // once the line is gone
  reload: exportAll,
};
