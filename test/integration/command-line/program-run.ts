/** The program from start to end, as a shell sees it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';

/** The file that starts the program. */
export const mainFile = path.join(import.meta.dirname, '../../../src/main.ts');

export interface ProgramRun {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs the program until it ends by itself; with nothing in its environment but what is given. */
export async function runProgram(
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<ProgramRun> {
  const child = spawn(process.execPath, [mainFile, ...args], {
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
}
