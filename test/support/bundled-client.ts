/** Imported by `npm test` before each test file, which then loads the one file that the run has made of the Kubernetes client. */
import { registerHooks } from 'node:module';

const url = process.env['TEST_KUBERNETES_CLIENT'];

if (url !== undefined) {
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === '@kubernetes/client-node'
        ? { url, format: 'module', shortCircuit: true }
        : next(specifier, context),
  });
}
