import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { connectionsFor } from '../../../src/cli/kubernetes.ts';

const nodeDeployment = ['--node-deployment'];
const capacity = ['--enable-capacity', '--capacity-ownerref-level=-1', '--capacity-threads=7'];

describe('connections to the API server', () => {
  for (const { name, flags, atLeast } of [
    { name: 'are enough for the workers of claims and of volumes', flags: ['--worker-threads=300'], atLeast: 600 },
    {
      name: 'are enough for the workers of clones as well',
      flags: ['--worker-threads=1', '--cloning-protection-threads=50'],
      atLeast: 52,
    },
    { name: 'are enough for the workers of capacity as well', flags: ['--worker-threads=1', ...capacity], atLeast: 10 },
    {
      name: 'are enough for nodes that contest claims as well',
      flags: ['--worker-threads=100', ...nodeDeployment],
      atLeast: 301,
    },
    { name: 'are there without any worker', flags: ['--worker-threads=0'], atLeast: 1 },
  ]) {
    test(name, () => {
      const parsed = parseCommandLine({
        argv0: 'csi-provisioner',
        args: flags,
        environment: { NODE_NAME: 'n1', NAMESPACE: 'ns' },
        version: 'v0',
      });
      assert.ok(parsed.kind === 'run');
      const connections = connectionsFor(parsed.config);
      assert.ok(connections >= atLeast, `${connections} connections`);
      assert.ok(connections <= atLeast + 28, `${connections} connections`);
    });
  }
});
