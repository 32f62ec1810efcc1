import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The base, and the options that need no flag of their own. */
const folders = [
  'base',
  ...['attachments', 'attributes-classes', 'capacity', 'leader-election', 'secrets', 'snapshots', 'topology'].map(
    (name) => `components/${name}`,
  ),
];

/** The sidecar's permissions in `deploy/`, as YAML. The bundler replaces this module by one that brings the text along. */
export function sidecarManifests(): string {
  const deploy = path.join(import.meta.dirname, '../../deploy');
  const texts = folders.map((folder) => readFileSync(path.join(deploy, folder, 'rbac.yaml'), 'utf8'));
  return texts.join('\n---\n').replaceAll('%NAMESPACE', 'default');
}
