import { join } from 'node:path';
import { startProcess, type StartedProcess } from './started-process.ts';

const program = join(import.meta.dirname, '../../src/main.ts');

export interface SidecarProcessOptions {
  /** `unix:///...`. */
  csiAddress: string;
  kubeconfig: string;
  /** Where its lease and notes live. */
  namespace: string;
  flags?: readonly string[];
}

/**
 * Starts the program under test. `E2E_SIDECAR` names another one to test in its place, such as a bundle
 * (`node dist/...`) or another implementation; its words are separated by blanks.
 */
export async function startSidecar(options: SidecarProcessOptions): Promise<StartedProcess> {
  const { csiAddress, kubeconfig, namespace, flags = [] } = options;
  const [command = process.execPath, ...words] = process.env['E2E_SIDECAR']?.split(' ') ?? [process.execPath, program];
  return await startProcess({
    program: command,
    args: [...words, `--csi-address=${csiAddress}`, `--kubeconfig=${kubeconfig}`, ...flags],
    env: { KUBECONFIG: undefined, POD_NAMESPACE: namespace, NAMESPACE: namespace },
  });
}
