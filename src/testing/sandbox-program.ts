import { existsSync } from 'node:fs';
import path from 'node:path';

/** `csi-sandbox`: the bundle of the package, or the source in a checkout. */
export function sandboxProgram(): string {
  const places = ['../../csi-sandbox.js', '../../sandbox/csi-sandbox.js'];
  const files = places.map((file) => path.join(import.meta.dirname, file));
  const found = files.find((file) => existsSync(file));
  if (found === undefined) throw new Error(`csi-sandbox is missing: neither ${files.join(' nor ')} is there`);
  return found;
}
