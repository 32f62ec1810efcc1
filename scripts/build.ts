/**
 * `npm run build`: the program as one minified file with its source map, `dist/csi-provisioner.js`. Only what is used
 * of the dependencies is in it; the CSI descriptor is put in as JSON, so nothing is read from disk at start.
 */
import { mkdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { build, type Plugin } from 'esbuild';
import { csiDescriptor } from '../src/csi/csi-proto-source.ts';

const root = path.join(import.meta.dirname, '..');
const outfile = path.join(root, 'dist/csi-provisioner.js');

/** Puts the parsed descriptor in the place of the module that parses the proto file. */
const descriptorInlined: Plugin = {
  name: 'csi-descriptor',
  setup: ({ onLoad }) => {
    onLoad({ filter: /csi-proto-source\.ts$/ }, () => ({
      contents: `const descriptor = ${JSON.stringify(csiDescriptor())};\nexport const csiDescriptor = () => descriptor;`,
      loader: 'js',
    }));
  },
};

/**
 * Two packages load all they have from one CommonJS entry, which no bundler can thin out. Only these parts are used, by
 * us and by client-node; the build fails when a name that somebody imports is not among them.
 */
const usedParts: Record<string, string> = {
  undici: `export { default as Agent } from 'undici/lib/dispatcher/agent.js';
    export { default as ProxyAgent } from 'undici/lib/dispatcher/proxy-agent.js';
    export const fetch = globalThis.fetch;`,
  'prom-client': `export { default as Counter } from 'prom-client/lib/counter.js';
    export { default as Gauge } from 'prom-client/lib/gauge.js';
    export { default as Histogram } from 'prom-client/lib/histogram.js';
    export { default as Registry } from 'prom-client/lib/registry.js';`,
};

const thinned: Plugin = {
  name: 'thinned-packages',
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /^(undici|prom-client)$/ }, ({ path: name, namespace }) =>
      namespace === 'thinned' ? undefined : { path: name, namespace: 'thinned' },
    );
    onLoad({ filter: /.*/, namespace: 'thinned' }, ({ path: name }) => ({
      contents: usedParts[name] ?? '',
      loader: 'js',
      resolveDir: root,
    }));
  },
};

await rm(path.dirname(outfile), { recursive: true, force: true });
await mkdir(path.dirname(outfile), { recursive: true });
const result = await build({
  entryPoints: [path.join(root, 'src/main.ts')],
  outfile,
  bundle: true,
  minify: true,
  keepNames: true, // error and class names stand in logs
  sourcemap: true,
  sourcesContent: false,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  // dependencies in CommonJS ask for `require`, which an ES module has to make itself
  banner: { js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);" },
  plugins: [descriptorInlined, thinned],
  metafile: true,
  logLevel: 'warning',
});
const { size } = await stat(outfile);
const heaviest = Object.entries(result.metafile.outputs)
  .flatMap(([, { inputs }]) => Object.entries(inputs))
  .map(([input, { bytesInOutput }]) => [/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1] ?? 'src', bytesInOutput] as const);
const byPackage = new Map<string, number>();
for (const [name, bytes] of heaviest) byPackage.set(name, (byPackage.get(name) ?? 0) + bytes);
console.log(`dist/csi-provisioner.js: ${(size / 1000).toFixed(0)} kB`);
for (const [name, bytes] of [...byPackage].toSorted(([, a], [, b]) => b - a).slice(0, 12)) {
  console.log(`  ${name.padEnd(36)} ${(bytes / 1000).toFixed(0).padStart(6)} kB`);
}
