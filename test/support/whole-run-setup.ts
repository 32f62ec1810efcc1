/** The global setup of `npm test`: that of every run, and what only pays off when all tests run. */
import { pathToFileURL } from 'node:url';
import { globalSetup as setUpRun } from './run-setup.ts';
import { buildPrograms, bundleKubernetesClient } from './test-programs.ts';

export async function globalSetup(): Promise<void> {
  setUpRun();
  if (process.env['NODE_V8_COVERAGE'] !== undefined) return; // which is measured of the sources
  const [programs, client] = await Promise.all([buildPrograms(), bundleKubernetesClient()]);
  process.env['TEST_PROGRAMS'] = programs;
  process.env['TEST_KUBERNETES_CLIENT'] = pathToFileURL(client).href;
}
