/** The suite for a provisioner with the mistake that is in the environment; started by mistakes.test.ts. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { KubeObject } from '../../src/index.ts';
import { testProvisioner } from '../../src/testing/kit.ts';
import { sourceArguments } from '../support/source-arguments.ts';

const program = path.join(import.meta.dirname, 'seeded-provisioner.ts');

const mistake = process.env['MISTAKE'] ?? 'none';
/** Such as `no right to create events`. */
const [, missingVerb = '', missingResource = ''] = /^no right to (\S+) (\S+)$/.exec(mistake) ?? [];

/** A role without a binding, as authors have it who bind it elsewhere. */
const role = (kind: 'ClusterRole' | 'Role', rules: Record<string, string[]>): KubeObject & { rules: unknown[] } => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind,
  metadata: { name: 'seeded' },
  rules: Object.entries(rules).map(([key, verbs]) => {
    const [resource = '', group = ''] = key.split('.', 1).concat(key.split('.').slice(1).join('.'));
    const isMissing = (verb: string): boolean => verb === missingVerb && resource === missingResource;
    return { apiGroups: [group], resources: [resource], verbs: verbs.filter((verb) => !isMissing(verb)) };
  }),
});
const rbac = [
  role('ClusterRole', {
    persistentvolumes: ['list', 'watch', 'create', 'patch', 'delete'],
    persistentvolumeclaims: ['get', 'list', 'watch'],
    'storageclasses.storage.k8s.io': ['list', 'watch'],
    events: ['create', 'patch'],
  }),
  role('Role', { 'leases.coordination.k8s.io': ['get', 'list', 'watch', 'create', 'update'] }),
];

/** A lease has to expire, or a call that is long over. */
const isSlow = ['none', 'a clean-up after a pause', 'a long maxCallMs'].includes(mistake);

testProvisioner(({ folder }) => [process.execPath, ...sourceArguments, program, folder, mistake], {
  provisionerName: 'seeded.example.com',
  listStorage: ({ folder }) => readdir(folder),
  storageOf: ({ spec }) => path.basename(spec.hostPath?.path ?? ''),
  leaderElection: true,
  rbac,
  settleMs: isSlow ? 60_000 : 20_000,
});
