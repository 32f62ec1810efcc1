/** The program from start to end, as a shell sees it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { programFile } from '../../support/program-file.ts';

/** The file that starts the program. */
export const mainFile = programFile('csi-provisioner');

export interface ProgramRun {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Flags of Node.js with which it says to be another version. */
export function claimingVersion(version: string): string[] {
  const code = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`];
}

/** Runs the program until it ends by itself; with nothing in its environment but what is given and what Node.js needs. */
export async function runProgram(
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<ProgramRun> {
  return await runNode([mainFile, ...args], { environment });
}

/** Runs Node.js until it ends by itself. Default: the one of this process. */
export async function runNode(
  args: readonly string[],
  { node = process.execPath, environment = {} }: { node?: string; environment?: Record<string, string> } = {},
): Promise<ProgramRun> {
  const child = spawn(node, args, {
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
}
