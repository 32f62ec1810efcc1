import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ProgramName } from './programs.ts';

/**
 * What `--help` of a control plane program says it knows. A program refuses to start with a controller or a feature gate that
 * is unknown to it, and which ones are known differs from version to version.
 */
export interface ProgramHelp {
  /** Whether `--controllers` takes this name; only of kube-controller-manager. */
  knowsController: (name: string) => boolean;
  /** Whether the gate can be switched: false also for a feature that is always on, since help leaves those out. */
  knowsGate: (name: string) => boolean;
}

/** @throws when the program cannot be run. */
export async function programHelp(binDir: string, program: Exclude<ProgramName, 'kubectl'>): Promise<ProgramHelp> {
  const { stdout } = await promisify(execFile)(join(binDir, program), ['--help'], { maxBuffer: 2 ** 24 });
  const controllers = new Set(/All controllers: (.*)/.exec(stdout)?.[1]?.split(', '));
  // From 1.31 on `kube:NAME=true|false`, before without the component.
  const gates = new Set(Array.from(stdout.matchAll(/([A-Za-z0-9]+)=true\|false/g), ([, name]) => name));
  return {
    knowsController: (name) => controllers.has(name),
    knowsGate: (name) => gates.has(name),
  };
}
