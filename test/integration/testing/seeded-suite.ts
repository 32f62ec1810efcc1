/** The suite for a provisioner with the mistake that is in the environment; started by mistakes.test.ts. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { testProvisioner } from '../../../src/testing/kit.ts';

const program = path.join(import.meta.dirname, 'seeded-provisioner.ts');

const mistake = process.env['MISTAKE'] ?? 'none';
/** A lease has to expire. */
const isSlow = ['none', 'a clean-up after a pause'].includes(mistake);

testProvisioner(({ folder }) => [process.execPath, program, folder, mistake], {
  provisionerName: 'seeded.example.com',
  listStorage: ({ folder }) => readdir(folder),
  storageOf: ({ spec }) => path.basename(spec.hostPath?.path ?? ''),
  leaderElection: true,
  settleMs: isSlow ? 60_000 : 20_000,
});
