/** The Go sidecar, external-provisioner, as the other sidecar of comparisons. */
import path from 'node:path';
import { runBuildScript } from '../build-script.ts';

/** Stands for the Go sidecar where a script takes the command of another one. */
export const goWord = 'go';

/** For the help of such a script. */
export const goHelp = `${goWord}: the Go external-provisioner, compiled the first time`;

/**
 * The command of another sidecar. `go` is that of the Go sidecar: `GO_SIDECAR`, or what `build.sh` has compiled or compiles now,
 * which takes minutes the first time. Everything else, also undefined, is returned as it is.
 *
 * @throws when the Go sidecar must be compiled and cannot be, such as without Go.
 */
export async function otherSidecar<T extends string | undefined>(
  given: T,
  env: NodeJS.ProcessEnv = process.env,
): Promise<T | string> {
  return given === goWord ? await runBuildScript(path.join(import.meta.dirname, 'build.sh'), [], env) : given;
}
