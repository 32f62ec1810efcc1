/**
 * `npm run test:e2e`: runs the end-to-end tests on a real Kubernetes control plane.
 *
 * Compiles the control plane if it is missing (see test/support/control-plane/build.sh), starts one for all test files and
 * ends with the tests' exit code. `--kubernetes 1.32` takes an older one. Other arguments are test files or flags for
 * `node --test`; by default all of test/e2e and of test/support/control-plane.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { glob } from 'node:fs/promises';
import { join } from 'node:path';
import { startControlPlane } from '../test/support/control-plane/control-plane.ts';
import { findPrograms } from '../test/support/control-plane/programs.ts';

const root = join(import.meta.dirname, '..');

async function main(args: string[]): Promise<number> {
  const { minor, rest } = kubernetesFlag(args);
  console.error('looking for the control plane; if it must be compiled first, that takes about ten minutes');
  const binDir = await findPrograms({ minor });
  await using plane = await startControlPlane({ binDir });
  const files = rest.some((arg) => arg.endsWith('.test.ts')) ? [] : await allTests();
  const child = spawn(
    process.execPath,
    // One file after the other: they share the control plane and usually two cores.
    ['--test', '--test-concurrency=1', '--test-timeout=300000', ...rest, ...files],
    {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, KUBE_BIN_DIR: binDir, E2E_TARGET: 'kubernetes', E2E_KUBECONFIG: plane.adminKubeconfig },
    },
  );
  // Stopping the script stops the tests; the control plane goes when they have ended.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill(signal));
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}

/** Takes `--kubernetes MINOR` or `--kubernetes=MINOR` out of the arguments. */
function kubernetesFlag(args: string[]): { minor: string | undefined; rest: string[] } {
  const flag = '--kubernetes';
  const at = args.findIndex((arg) => arg === flag || arg.startsWith(`${flag}=`));
  if (at === -1) return { minor: undefined, rest: args };
  const inline = args[at] !== flag;
  const minor = inline ? args[at]?.slice(flag.length + 1) : args[at + 1];
  if (!minor) throw new Error('--kubernetes needs a minor version, such as 1.32');
  return { minor, rest: args.toSpliced(at, inline ? 1 : 2) };
}

async function allTests(): Promise<string[]> {
  const files: string[] = [];
  for await (const file of glob('test/{support/control-plane,e2e}/**/*.test.ts', { cwd: root })) files.push(file);
  return files.toSorted();
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(`test:e2e: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
