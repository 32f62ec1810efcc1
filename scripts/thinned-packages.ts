import type { Plugin } from 'esbuild';

/**
 * Packages of which a small part is used, and which no bundler can thin out by itself, with what is used of them, by
 * us and by each other. The build fails when somebody imports a name that is not among them.
 */
const usedParts: Record<string, string> = {
  undici: `import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
    import connect from 'undici/lib/api/api-connect.js';
    import request from 'undici/lib/api/api-request.js';
    Object.assign(Dispatcher.prototype, { connect, request }); // undici's entry adds all its methods so; proxies need connect
    export { default as buildConnector } from 'undici/lib/core/connect.js';
    export { default as Agent } from 'undici/lib/dispatcher/agent.js';
    export { default as Pool } from 'undici/lib/dispatcher/pool.js';
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
    export { InterceptingCall } from '@grpc/grpc-js/build/src/client-interceptors.js';
    export { Metadata } from '@grpc/grpc-js/build/src/metadata.js';
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

/**
 * Replaces packages by the part of them that is used.
 *
 * @param whole - packages to leave as they are.
 */
export const thinnedPackages = (whole: readonly string[]): Plugin => ({
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
      resolveDir: import.meta.dirname,
    }));
  },
});
