/**
 * `npm run build`: the programs as one minified file each, and the licences of what is in them. Only what is used of the
 * dependencies is there; the CSI descriptor is put in as JSON, so nothing is read from disk at start.
 *
 *   node scripts/build.ts                   dist/csi-provisioner.js with its source map, and dist/csi-sandbox.js
 *   node scripts/build.ts csi-provisioner   the sidecar alone, as its image has it
 */
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { build, type BuildOptions, type Plugin } from 'esbuild';
import { sidecarManifests } from '../sandbox/cluster/sidecar-manifests.ts';
import { messageForm } from '../sandbox/csi-services.ts';
import { csiDescriptor } from '../src/csi/csi-proto-source.ts';
import { callersInlined } from './inline-callers.ts';
import { thirdPartyLicences } from './third-party-licences.ts';

const root = path.join(import.meta.dirname, '..');
const dist = path.join(root, 'dist');

/** Replaces the module that parses the proto file by the parsed descriptor. */
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
  '@grpc/proto-loader': 'export const loadSync = undefined;', // imported by grpc-js's own diagnostic services
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

/** Files that packages load and never use. */
const unusedFiles: readonly (readonly [filter: RegExp, contents: string])[] = [
  [/\/undici\/lib\/dispatcher\/client-h2\.js$/, 'module.exports = undefined;'], // `allowH2` is off
];

/** @param whole - packages to leave as they are. */
const thinned = (whole: readonly string[]): Plugin => ({
  name: 'thinned-packages',
  setup: (plugged) => {
    plugged.onResolve({ filter: /.*/ }, ({ path: name, namespace, importer }) => {
      const inClientNode = importer.includes('@kubernetes/client-node/dist/');
      if (namespace === 'thinned' || usedParts[name] === undefined || whole.includes(name)) return undefined;
      return name.startsWith('./') && !inClientNode ? undefined : { path: name, namespace: 'thinned' };
    });
    plugged.onLoad({ filter: /.*/, namespace: 'thinned' }, ({ path: name }) => ({
      contents: usedParts[name] ?? '',
      loader: 'js',
      resolveDir: root,
    }));
    for (const [filter, contents] of unusedFiles) plugged.onLoad({ filter }, () => ({ contents, loader: 'js' }));
  },
});

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

/** The sandbox reads two files of the repository, which the bundle brings along. */
const sandboxFilesInlined: Plugin = {
  name: 'sandbox-files',
  setup: (plugged) => {
    plugged.onLoad({ filter: /sandbox\/csi-services\.ts$/ }, () => ({
      contents: `import { fromJSON } from '@grpc/proto-loader';
        const form = ${JSON.stringify({ ...messageForm, longs: undefined, enums: undefined })};
        export const messageForm = { ...form, longs: String, enums: String };
        export const csiServices = () => fromJSON(${JSON.stringify(csiDescriptor())}, messageForm);`,
      loader: 'js',
      resolveDir: root,
    }));
    plugged.onLoad({ filter: /sandbox\/cluster\/sidecar-manifests\.ts$/ }, () => ({
      contents: `export const sidecarManifests = () => ${JSON.stringify(sidecarManifests())};`,
      loader: 'js',
    }));
  },
};

const common = {
  bundle: true,
  minify: true,
  legalComments: 'none', // they stand in the licence file; one letter beyond ASCII in the bundle doubles its memory
  keepNames: true, // error and class names stand in logs
  platform: 'node',
  target: oldestParser,
  format: 'esm',
  define: { esbuildDetection: 'true' }, // how undici's makers leave its experimental parser out
  metafile: true,
  logLevel: 'warning',
} as const satisfies BuildOptions;

// dependencies in CommonJS call `require`, which an ES module has to make itself
const requireMade = "const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);";

/** Bundles one program and says what is in it. @returns the files that went into it. */
async function bundle(outfile: string, options: BuildOptions): Promise<string[]> {
  const result = await build({ ...common, ...options, metafile: true, outfile: path.join(dist, outfile) });
  const bundled = Object.values(result.metafile.outputs)
    .flatMap(({ inputs }) => Object.entries(inputs))
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const byPackage = new Map<string, number>();
  for (const [input, { bytesInOutput }] of bundled) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1] ?? 'src';
    byPackage.set(name, (byPackage.get(name) ?? 0) + bytesInOutput);
  }
  const { size } = await stat(path.join(dist, outfile));
  console.log(`dist/${outfile}: ${(size / 1000).toFixed(0)} kB`);
  for (const [name, bytes] of [...byPackage].toSorted(([, a], [, b]) => b - a).slice(0, 12)) {
    console.log(`  ${name.padEnd(36)} ${(bytes / 1000).toFixed(0).padStart(6)} kB`);
  }
  return bundled.map(([input]) => input);
}

async function buildSidecar(): Promise<string[]> {
  return await bundle('csi-provisioner.js', {
    entryPoints: [path.join(root, 'src/cli/main.ts')],
    sourcemap: true,
    sourcesContent: false,
    banner: { js: ['#!/usr/bin/env node', await versionCheck(), requireMade].join('\n') },
    plugins: [descriptorInlined, callersInlined, thinned([]), builtinsRequired],
  });
}

/** The bundle, and beside it the file that starts it, which an old Node.js can read. */
async function buildSandbox(): Promise<string[]> {
  const main = 'csi-sandbox-main.js';
  const inputs = await bundle(main, {
    entryPoints: [path.join(root, 'sandbox/cluster/main.ts')],
    banner: { js: requireMade },
    plugins: [sandboxFilesInlined, thinned(['@grpc/grpc-js', '@grpc/proto-loader']), builtinsRequired],
  });
  const starter = await readFile(path.join(root, 'sandbox/csi-sandbox.js'), 'utf8');
  await writeFile(path.join(dist, 'csi-sandbox.js'), starter.replace('./cluster/main.ts', `./${main}`));
  await chmod(path.join(dist, 'csi-sandbox.js'), 0o755);
  return inputs;
}

const sidecarAlone = process.argv[2] === 'csi-provisioner';
await mkdir(dist, { recursive: true });
const inputs = new Set([...(await buildSidecar()), ...(sidecarAlone ? [] : await buildSandbox())]);
await writeFile(path.join(dist, 'THIRD-PARTY-LICENSES.txt'), await thirdPartyLicences(root, inputs));
