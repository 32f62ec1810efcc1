import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

/**
 * Runs a `build.sh` that compiles what is missing. Progress and errors go to the standard error of this process, which may be a
 * terminal.
 *
 * @returns the path that it prints.
 * @throws when it fails, such as without Go.
 */
export async function runBuildScript(
  script: string,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const child = spawn('bash', [script, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [printed] = await Promise.all([text(child.stdout), once(child, 'close')]);
  const { exitCode: code, signalCode: signal } = child;
  if (code !== 0) throw new Error(`build.sh ended with ${String(code ?? signal)}: its messages are on standard error`);
  return printed.trim();
}
