/**
 * `npm run build:lib` ends with it: the library reads kubeconfigs with a small part of the client of Kubernetes, which comes with 62 MB.
 * That part becomes a file of the library, and nobody who installs it gets the rest.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { build } from 'esbuild';
import { thinnedPackages } from '../thinned-packages.ts';

const root = path.join(import.meta.dirname, '../..');
const client = '@kubernetes/client-node';
const yaml = 'js-yaml'; // which the client brings along anyway
const folder = path.join(root, 'dist/lib/kube/credentials');
const bundled = 'kubernetes-client';

/** What others see of it: no declaration of the public surface names it. */
const declarations = `/** Of the client of Kubernetes, bundled. */
export declare class KubeConfig {
    #private;
}
export declare const CORE_SCHEMA: unknown, boolYaml11Tag: unknown, mergeTag: unknown;
export declare function load(text: string): unknown;
`;

async function main(): Promise<void> {
  await build({
    stdin: {
      contents: `export { KubeConfig } from '${client}';
        export { boolYaml11Tag, CORE_SCHEMA, load, mergeTag } from '${yaml}';`,
      resolveDir: root,
    },
    outfile: path.join(folder, `${bundled}.js`),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    minifyWhitespace: true,
    legalComments: 'none', // they are in THIRD-PARTY-LICENSES.txt
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    plugins: [thinnedPackages([])],
    logLevel: 'warning',
  });
  await writeFile(path.join(folder, `${bundled}.d.ts`), declarations);
  for (const file of await readdir(folder)) if (!file.startsWith(bundled)) await takeBundled(path.join(folder, file));
}

async function takeBundled(file: string): Promise<void> {
  const text = await readFile(file, 'utf8');
  const rewritten = [client, yaml].reduce((now, name) => now.replaceAll(`'${name}'`, `'./${bundled}.js'`), text);
  if (rewritten !== text) await writeFile(file, rewritten);
}

await main();
