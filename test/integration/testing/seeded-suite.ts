/** The suite for a provisioner with the mistake that is in the environment; started by mistakes.test.ts. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { testProvisioner } from '../../../src/testing/kit.ts';

const program = path.join(import.meta.dirname, 'seeded-provisioner.ts');

testProvisioner(({ folder }) => [process.execPath, program, folder, process.env['MISTAKE'] ?? 'none'], {
  provisionerName: 'seeded.example.com',
  listStorage: ({ folder }) => readdir(folder),
  storageOf: ({ spec }) => path.basename(spec.hostPath?.path ?? ''),
  settleMs: 20_000,
});
