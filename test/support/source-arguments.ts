import path from 'node:path';

/**
 * Arguments of Node.js for a program that is started from its sources: in `npm test` it loads the client of Kubernetes as one file,
 * which takes half the CPU.
 */
export const sourceArguments: readonly string[] =
  process.env['TEST_KUBERNETES_CLIENT'] === undefined
    ? []
    : [`--import=${path.join(import.meta.dirname, 'bundled-client.ts')}`];
