import { readFileSync } from 'node:fs';
import path from 'node:path';

const files = ['base/rbac.yaml', 'overlays/topology/rbac.yaml'];

/** The sidecar's rights in `deploy/`, as YAML. The bundler replaces this module by one that brings the text along. */
export function sidecarManifests(): string {
  const folder = path.join(import.meta.dirname, '../../deploy');
  return files.map((file) => readFileSync(path.join(folder, file), 'utf8')).join('\n---\n');
}
