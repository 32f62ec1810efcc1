/** The global setup of `npm test`: that of every run, and what only pays off when all tests run. */
import { globalSetup as setUpRun } from './run-setup.ts';
import { buildPrograms } from './test-programs.ts';

export async function globalSetup(): Promise<void> {
  setUpRun();
  if (process.env['NODE_V8_COVERAGE'] !== undefined) return; // which is measured of the sources
  process.env['TEST_PROGRAMS'] = await buildPrograms();
}
