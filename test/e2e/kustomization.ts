import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { loadAllYaml, loadYaml, type KubernetesObject } from '@kubernetes/client-node';
import { kustomize } from '../support/kubectl.ts';

/** The folder with the manifests of this repository. */
export const deployFolder = join(import.meta.dirname, '../../deploy');

/** What a user changes in a copy of deploy/overlays/production. */
export interface OwnInstall {
  namespace: string;
  /** Names of folders below deploy/components. */
  components: readonly string[];
  /** Whether the copy keeps the replacements that give cluster-wide objects names of their own; default true. */
  ownNames?: boolean;
}

interface Kustomization {
  resources: string[];
  replacements?: unknown;
}

/**
 * Writes a kustomization as a user would: a copy of deploy/overlays/production with another namespace and other
 * components.
 *
 * @returns its folder, which disposing removes.
 */
export async function ownInstall({
  namespace,
  components,
  ownNames = true,
}: OwnInstall): Promise<{ folder: string } & AsyncDisposable> {
  const pattern = join(deployFolder, 'overlays/production');
  const { replacements, ...copy } = loadYaml<Kustomization>(
    await readFile(join(pattern, 'kustomization.yaml'), 'utf8'),
  );
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'kustomization-')));
  const here = (path: string): string => relative(folder, resolve(pattern, path));
  const kustomization = {
    ...copy,
    ...(ownNames && { replacements }),
    namespace,
    resources: copy.resources.map(here),
    components: components.map((name) => here(`../../components/${name}`)),
  };
  await writeFile(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization));
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}

/** The objects that kustomize makes of a folder. */
export async function builtObjects(kubectl: string, folder: string): Promise<KubernetesObject[]> {
  return loadAllYaml(await kustomize(kubectl, folder)) as KubernetesObject[];
}

/** The only object of a kind. */
export function onlyOf<T extends KubernetesObject>(objects: readonly KubernetesObject[], kind: string): T {
  const found = objects.filter((object) => object.kind === kind);
  if (found.length !== 1) throw new Error(`${found.length} objects of kind ${kind}, not one`);
  return found[0] as T;
}
