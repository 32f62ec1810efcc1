import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';

export interface ToolOptions {
  /** Added to this process's environment. */
  environment?: Record<string, string>;
  /** Lets its messages through to the terminal instead of keeping them for the error. */
  loud?: boolean;
}

/**
 * Runs a program to its end.
 *
 * @returns what it wrote to standard output.
 * @throws when it cannot be started or fails, with what it wrote to standard error.
 */
export async function runTool(program: string, args: readonly string[], options: ToolOptions = {}): Promise<string> {
  const { environment = {}, loud = false } = options;
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', loud ? 'inherit' : 'pipe'],
    env: { ...process.env, ...environment },
  });
  const [output, messages] = await Promise.all([readAll(child.stdout), readAll(child.stderr), once(child, 'close')]);
  if (child.exitCode !== 0) {
    const ending = child.exitCode === null ? String(child.signalCode) : `exit code ${child.exitCode}`;
    throw new Error(`${program} ${args.join(' ')}: ${ending}\n${messages.trim()}`);
  }
  return output;
}

async function readAll(stream: Readable | null): Promise<string> {
  return stream === null ? '' : await text(stream);
}
