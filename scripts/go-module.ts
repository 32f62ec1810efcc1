import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

export interface GoProgram {
  name: string;
  /** Folder of the module. */
  module: string;
  /** What to build of it, such as `.`. */
  target: string;
  /** Files of the module that decide about the program. */
  files: readonly string[];
  /** Folder below ${XDG_CACHE_HOME:-~/.cache}. */
  cache: string;
}

/** Compiles a program of a Go module unless it is there for these very files. @returns its path. */
export async function compileProgram({ name, module, target, files, cache }: GoProgram): Promise<string> {
  const parts = await Promise.all(files.map((file) => readFile(path.join(module, file))));
  const version = createHash('sha256').update(Buffer.concat(parts)).digest('hex').slice(0, 12);
  const folder = path.join(process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache'), cache);
  const program = path.join(folder, `${name}-${version}`);
  if (existsSync(program)) return program;
  console.error(`Compiling ${name}, which takes a minute or two.`);
  await mkdir(folder, { recursive: true });
  const unfinished = `${program}.${process.pid}`;
  const env = { ...process.env, CGO_ENABLED: '0' };
  await promisify(execFile)('go', ['build', '-trimpath', '-o', unfinished, target], { cwd: module, env });
  await rename(unfinished, program); // two builds at once: the last one wins, neither is half written
  return program;
}
