import { existsSync } from 'node:fs';
import path from 'node:path';

/** Beside the bundle stands the bundled sidecar, beside the sources its source. */
const sidecarFiles = ['csi-provisioner.js', '../../src/main.ts'];

/** The sidecar's main file. @throws when neither is there. */
export function sidecarFile(): string {
  const found = sidecarFiles.map((file) => path.join(import.meta.dirname, file)).find((file) => existsSync(file));
  if (found === undefined) throw new Error(`there is no sidecar beside ${import.meta.dirname}`);
  return found;
}

/** What starts the sample driver: its source, or the bundle with a command that names it. */
export function sampleDriverArguments(): string[] {
  const source = path.join(import.meta.dirname, '../hostpath/main.ts');
  return existsSync(source) ? [source] : [import.meta.filename, 'hostpath-driver'];
}
