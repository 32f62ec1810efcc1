import { spawnSync } from 'node:child_process';
import { startProcess, type StartedProcess } from './started-process.ts';
import { programFile } from './program-file.ts';

const program = programFile('csi-provisioner');

export interface SidecarProcessOptions {
  /** `unix:///...`. */
  csiAddress: string;
  kubeconfig: string;
  /** Where its lease and notes live. */
  namespace: string;
  flags?: readonly string[];
  /** Further environment. */
  environment?: Record<string, string | undefined> | undefined;
  /** What the process takes for the name of its machine, and so for itself in an election; see `fakeHostName`. */
  hostName?: string | undefined;
  /** Another program in its place, as `E2E_SIDECAR`. */
  program?: string | undefined;
}

/**
 * The words that start the program under test. `E2E_SIDECAR` names another one to test in its place, such as a bundle
 * (`node dist/...`) or another implementation; its words are separated by blanks.
 */
export function sidecarCommand(named = process.env['E2E_SIDECAR']): string[] {
  return named?.split(' ').filter((word) => word !== '') ?? [process.execPath, program];
}

/** Starts the program under test. */
export async function startSidecar(options: SidecarProcessOptions): Promise<StartedProcess> {
  const { csiAddress, kubeconfig, namespace, flags = [], environment, hostName } = options;
  const line = [
    ...sidecarCommand(options.program),
    `--csi-address=${csiAddress}`,
    `--kubeconfig=${kubeconfig}`,
    ...flags,
  ];
  const [first = '', ...rest] = hostName === undefined ? line : [...fakeHostName(hostName), ...line];
  return await startProcess({
    program: first,
    args: rest,
    env: { KUBECONFIG: undefined, POD_NAMESPACE: namespace, NAMESPACE: namespace, ...environment },
  });
}

/**
 * Words before a command that let it run under another host name, in the same process.
 *
 * @throws where that is not permitted.
 */
function fakeHostName(hostName: string): string[] {
  const program = 'unshare';
  // In a user namespace it needs no root, but some machines forbid those.
  for (const flags of [['--uts'], ['--map-root-user', '--uts']]) {
    const words = [...flags, 'sh', '-c', 'hostname "$0" && exec "$@"', hostName];
    if (spawnSync(program, [...words, 'true']).status === 0) return [program, ...words];
  }
  throw new Error('processes with a host name of their own are not permitted here');
}

/** Whether `hostName` can be had on this machine. */
export function canFakeHostName(): boolean {
  try {
    return fakeHostName('probe').length > 0;
  } catch {
    return false;
  }
}
