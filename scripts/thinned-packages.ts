import type { Plugin } from 'esbuild';

/**
 * Packages of which a small part is used, and which no bundler can thin out by itself, with what is used of them, by
 * us and by each other. The build fails when somebody imports a name that is not among them.
 */
const usedParts: Record<string, string> = {
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
};

/**
 * Replaces packages by the part of them that is used.
 *
 * @param whole - packages to leave as they are.
 */
export const thinnedPackages = (whole: readonly string[]): Plugin => ({
  name: 'thinned-packages',
  setup: (plugged) => {
    plugged.onResolve({ filter: /.*/ }, ({ path: name, namespace }) => {
      if (namespace === 'thinned' || usedParts[name] === undefined || whole.includes(name)) return undefined;
      return { path: name, namespace: 'thinned' };
    });
    plugged.onLoad({ filter: /.*/, namespace: 'thinned' }, ({ path: name }) => ({
      contents: usedParts[name] ?? '',
      loader: 'js',
      resolveDir: import.meta.dirname,
    }));
  },
});
