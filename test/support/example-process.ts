import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { sourceArguments } from './source-arguments.ts';
import { startProcess, type StartedProcess } from './started-process.ts';

/** Folder of the example provisioner. */
export const exampleFolder = join(import.meta.dirname, '../../provisioners/hostpath-provisioner');
const sources = join(import.meta.dirname, '../../src');
const exported = { '.': 'index.ts', './kube': 'kube.ts', './testing': 'testing/kit.ts' };

/** The example as somebody would have it: in a folder of its own, beside a `node_modules` with the library. */
export interface Example extends AsyncDisposable {
  /** Where its files are. */
  readonly folder: string;
  /** Where the volumes are. */
  readonly volumes: string;
  /** Starts one of its programs; may be repeated. It is stopped in the end, if it still runs. */
  start(program: string, options: { kubeconfig: string; env?: Record<string, string> }): Promise<StartedProcess>;
}

/** Copies the example and links the library's sources to it. */
export async function installExample(): Promise<Example> {
  const folder = await mkdtemp(join(tmpdir(), 'example-'));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  await cp(exampleFolder, folder, { recursive: true });
  const installed = join(folder, 'node_modules/csi-provisioner');
  await mkdir(installed, { recursive: true });
  const exports: Record<string, string> = {};
  for (const [name, source] of Object.entries(exported)) {
    exports[name] = `./${source.replaceAll('/', '-')}.js`;
    const target = pathToFileURL(join(sources, source)).href;
    await writeFile(join(installed, exports[name]), `export * from ${JSON.stringify(target)};\n`);
  }
  await writeFile(
    join(installed, 'package.json'),
    JSON.stringify({ name: 'csi-provisioner', type: 'module', exports }),
  );
  const volumes = join(folder, 'volumes');
  await mkdir(volumes);
  const owned = cleanup.move();
  return {
    folder,
    volumes,
    async start(program, { kubeconfig, env = {} }) {
      const started = await startProcess({
        program: process.execPath,
        args: [...sourceArguments, join(folder, program), volumes],
        env: { ...env, KUBECONFIG: kubeconfig },
      });
      owned.defer(() => started.stop());
      return started;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
