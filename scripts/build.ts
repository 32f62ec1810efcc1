/**
 * `npm run build`: the program as one minified file with its source map, `dist/csi-provisioner.js`, and the licences of
 * what is in it. Only what is used of the dependencies is there; the CSI descriptor is put in as JSON, so nothing is read
 * from disk at start.
 */
import { mkdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { build, type Plugin } from 'esbuild';
import { csiDescriptor } from '../src/csi/csi-proto-source.ts';
import { callersInlined } from './inline-callers.ts';
import { thirdPartyLicences } from './third-party-licences.ts';

const root = path.join(import.meta.dirname, '..');
const outfile = path.join(root, 'dist/csi-provisioner.js');

/** Puts the parsed descriptor in the place of the module that parses the proto file. */
const descriptorInlined: Plugin = {
  name: 'csi-descriptor',
  setup: (plugged) => {
    plugged.onLoad({ filter: /csi-proto-source\.ts$/ }, () => ({
      contents: `const descriptor = ${JSON.stringify(csiDescriptor())};\nexport const csiDescriptor = () => descriptor;`,
      loader: 'js',
    }));
  },
};

/**
 * Packages of which a small part is used, and which no bundler can thin out by itself: here stands what is used of
 * them, by us and by each other. The build fails when somebody imports a name that is not among them.
 */
const usedParts: Record<string, string> = {
  undici: `import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
    import request from 'undici/lib/api/api-request.js';
    Dispatcher.prototype.request = request; // undici's entry adds all its methods so
    export { default as Agent } from 'undici/lib/dispatcher/agent.js';
    export { default as ProxyAgent } from 'undici/lib/dispatcher/proxy-agent.js';`,
  'prom-client': `export { default as Counter } from 'prom-client/lib/counter.js';
    export { default as Gauge } from 'prom-client/lib/gauge.js';
    export { default as Histogram } from 'prom-client/lib/histogram.js';
    export { default as Registry } from 'prom-client/lib/registry.js';`,
  // a client that dials unix sockets: no server, no DNS, no other load balancing than the one connection
  '@grpc/grpc-js': `import '@grpc/grpc-js/build/src/channel.js'; // first, as in the package: its files are in a circle
    import { setup as setupUnixSockets } from '@grpc/grpc-js/build/src/resolver-uds.js';
    import { setup as setupPickFirst } from '@grpc/grpc-js/build/src/load-balancer-pick-first.js';
    import { ChannelCredentials } from '@grpc/grpc-js/build/src/channel-credentials.js';
    export { Client } from '@grpc/grpc-js/build/src/client.js';
    export { ConnectivityState as connectivityState } from '@grpc/grpc-js/build/src/connectivity-state.js';
    export { Status as status } from '@grpc/grpc-js/build/src/constants.js';
    export { makeClientConstructor as makeGenericClientConstructor } from '@grpc/grpc-js/build/src/make-client.js';
    export const credentials = { createInsecure: ChannelCredentials.createInsecure };
    setupUnixSockets();
    setupPickFirst();`,
  '@grpc/proto-loader': 'export const loadSync = undefined;', // grpc-js's own services of diagnosis ask for it
  '@kubernetes/client-node': `export { KubeConfig } from '@kubernetes/client-node/dist/config.js';
    export { load as loadYaml } from 'js-yaml';`,
  // client-node makes agents and typed clients with these; we only take its configuration and credentials
  './gen/index.js': 'export const createConfiguration = undefined, ServerConfiguration = undefined;',
  './middleware.js': 'export const setHeaderMiddleware = undefined;',
  'socks-proxy-agent': 'export const SocksProxyAgent = undefined;',
  socks: 'export const SocksClient = undefined;',
  hpagent: 'export const HttpProxyAgent = undefined, HttpsProxyAgent = undefined;',
  // authentication providers that Kubernetes removed in 1.26 in favour of exec plugins
  './azure_auth.js': 'export class AzureAuth { isAuthProvider() { return false; } }',
  './gcp_auth.js': 'export class GoogleCloudPlatformAuth { isAuthProvider() { return false; } }',
};

/** Files of packages that ask for them and never get to use them. */
const unusedFiles: readonly (readonly [filter: RegExp, contents: string])[] = [
  [/\/undici\/lib\/dispatcher\/client-h2\.js$/, 'module.exports = undefined;'], // `allowH2` is off
];

const thinned: Plugin = {
  name: 'thinned-packages',
  setup: (plugged) => {
    plugged.onResolve({ filter: /.*/ }, ({ path: name, namespace, importer }) => {
      const inClientNode = importer.includes('@kubernetes/client-node/dist/');
      if (namespace === 'thinned' || usedParts[name] === undefined) return undefined;
      return name.startsWith('./') && !inClientNode ? undefined : { path: name, namespace: 'thinned' };
    });
    plugged.onLoad({ filter: /.*/, namespace: 'thinned' }, ({ path: name }) => ({
      contents: usedParts[name] ?? '',
      loader: 'js',
      resolveDir: root,
    }));
    for (const [filter, contents] of unusedFiles) plugged.onLoad({ filter }, () => ({ contents, loader: 'js' }));
  },
};

/**
 * Node's own modules come by `require`: an `import` would read every property of them, and those of `node:http` that
 * stand for WebSocket and its events load Node's whole fetch implementation.
 */
const builtinsRequired: Plugin = {
  name: 'builtins-required',
  setup: (plugged) => {
    plugged.onResolve({ filter: /^node:/ }, ({ path: name, kind }) =>
      kind === 'import-statement' ? { path: name, namespace: 'builtin' } : undefined,
    );
    plugged.onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path: name }) => ({
      contents: `module.exports = require(${JSON.stringify(name)})`,
      loader: 'js',
    }));
  },
};

/**
 * The check of the Node.js version as a statement. It can be the first one of the bundle because nothing is imported there
 * and no syntax is newer than `oldestParser`.
 */
async function versionCheck(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [path.join(root, 'src/check-node.ts')],
    write: false,
    bundle: true,
    minify: true,
    format: 'iife',
    target: oldestParser,
  });
  return outputFiles[0]?.text.trim() ?? '';
}

/** The Node.js that still has to read the bundle, so as to say that it is too old. */
const oldestParser = 'node18';

await mkdir(path.dirname(outfile), { recursive: true });
const result = await build({
  entryPoints: [path.join(root, 'src/cli/main.ts')],
  outfile,
  bundle: true,
  minify: true,
  legalComments: 'none', // they stand in the licence file; one letter beyond ASCII in the bundle doubles its memory
  keepNames: true, // error and class names stand in logs
  sourcemap: true,
  sourcesContent: false,
  platform: 'node',
  target: oldestParser,
  format: 'esm',
  // dependencies in CommonJS ask for `require`, which an ES module has to make itself
  banner: {
    js: [
      '#!/usr/bin/env node',
      await versionCheck(),
      "const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);",
    ].join('\n'),
  },
  define: { esbuildDetection: 'true' }, // how undici's makers leave its experimental parser out
  plugins: [descriptorInlined, callersInlined, thinned, builtinsRequired],
  metafile: true,
  logLevel: 'warning',
});
const bundled = Object.values(result.metafile.outputs)
  .flatMap(({ inputs }) => Object.entries(inputs))
  .filter(([, { bytesInOutput }]) => bytesInOutput > 0);
const licences = await thirdPartyLicences(
  root,
  bundled.map(([input]) => input),
);
await writeFile(path.join(root, 'dist/THIRD-PARTY-LICENSES.txt'), licences);
const { size } = await stat(outfile);
const byPackage = new Map<string, number>();
for (const [input, { bytesInOutput }] of bundled) {
  const name = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1] ?? 'src';
  byPackage.set(name, (byPackage.get(name) ?? 0) + bytesInOutput);
}
console.log(`dist/csi-provisioner.js: ${(size / 1000).toFixed(0)} kB`);
for (const [name, bytes] of [...byPackage].toSorted(([, a], [, b]) => b - a).slice(0, 12)) {
  console.log(`  ${name.padEnd(36)} ${(bytes / 1000).toFixed(0).padStart(6)} kB`);
}
