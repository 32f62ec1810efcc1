/** promtool, Prometheus' own check of rules and metrics. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';

const build = path.join(import.meta.dirname, 'build.sh');

/** For the reason of a skipped test. */
export const howToBuild = 'no promtool is built: test/support/promtool/build.sh compiles it, with Go';

/** @returns undefined where it was not compiled: that takes minutes, so a test does not begin it. */
export async function builtPromtool(): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)('bash', [build, '--built']);
    return stdout.trim();
  } catch (error) {
    if ((error as { code?: unknown }).code === 1) return undefined;
    throw error;
  }
}

/** How promtool ended, and all it wrote. */
export interface PromtoolResult {
  code: number | null;
  output: string;
}

export async function runPromtool(
  program: string,
  args: readonly string[],
  { cwd, input = '' }: { cwd?: string; input?: string } = {},
): Promise<PromtoolResult> {
  const child = spawn(program, args, { stdio: 'pipe', ...(cwd !== undefined && { cwd }) });
  child.stdin.end(input);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, output: stdout + stderr };
}
