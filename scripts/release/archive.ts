import { readFile, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { runTool } from '../image/run-tool.ts';

export interface ArchiveOptions {
  /** Which paths are relative to. */
  readonly folder: string;
  /** Files and folders in it. */
  readonly paths: readonly string[];
  /** The time of every file, in seconds since 1970. */
  readonly epoch: number;
}

/** Writes a tar archive, compressed where its name ends in `gz`. The same files make the same bytes. */
export async function writeArchive(file: string, { folder, paths, epoch }: ArchiveOptions): Promise<void> {
  const owner = ['--owner=0', '--group=0', '--numeric-owner', '--mode=u+rwX,go+rX,go-w'];
  const order = ['--sort=name', `--mtime=@${epoch}`, '--format=ustar'];
  await runTool('tar', [...order, ...owner, '--create', '--file', file, '--directory', folder, ...paths]);
  if (file.endsWith('gz')) await writeFile(file, gzipSync(await readFile(file), { level: 9 }));
}
