import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from '../../../../src/base/clock.ts';
import { silentLogger } from '../../../../src/base/logger.ts';
import { centralTopology } from '../../../../src/cli/features/topology-feature.ts';
import { csiNodeResource, nodeInformers, nodeResource } from '../../../../src/csi/topology/topology-nodes.ts';
import type { SandboxObject } from '../../../../sandbox/api/client.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { SandboxApi } from '../../../support/sandbox-api.ts';
import { csiNodeObject, driverName, nodeObject, nodesOf, terms } from '../../../support/topology-clusters.ts';

const question = { claimName: 'testpvc', allowedTopologies: undefined, selectedNodeName: 'n2' };
/** Topology on caches of the sandbox's API that do not run before the first question. */
async function scene() {
  const api = await SandboxApi.start();
  for (const each of nodesOf('three zones')) {
    api.own.create(nodeResource, nodeObject(each) as SandboxObject);
    api.own.create(csiNodeResource, csiNodeObject(each) as unknown as SandboxObject);
  }
  const clock = new ManualClock();
  const logger = silentLogger;
  const end = new AbortController();
  const running: Promise<void>[] = [];
  const refused = Promise.withResolvers<undefined>();
  const ignore = (): void => undefined;
  let starts = 0;
  const nodes = nodeInformers({
    transport: api.transport,
    driverName,
    metrics: () => ({ listed: ignore, watched: ignore, shortWatch: ignore, failed: () => refused.resolve(undefined) }),
    clock: systemClock,
    logger,
  });
  const startCaches = (): void => {
    starts += 1;
    running.push(nodes.nodes.run(end.signal), nodes.csiNodes.run(end.signal));
  };
  const options = { driverName, nodes, startCaches, strict: false, immediate: true, signal: end.signal, clock, logger };
  return {
    api,
    clock,
    end,
    topology: centralTopology(options),
    starts: () => starts,
    refused: refused.promise,
    async [Symbol.asyncDispose]() {
      end.abort(new Error('the test is over'));
      await Promise.all(running);
      await api[Symbol.asyncDispose]();
    },
  };
}

describe('topology whose caches do not run yet', () => {
  test('starts them once and answers when they are filled', async () => {
    await using rig = await scene();
    const asked = { requisite: terms('{Z=z1} {Z=z2} {Z=z3}'), preferred: terms('{Z=z2} {Z=z3} {Z=z1}') };
    assert.deepEqual(await Promise.all([1, 2].map(() => Promise.resolve(rig.topology.requirements(question)))), [
      asked,
      asked,
    ]);
    assert.deepEqual(await rig.topology.requirements(question), asked);
    assert.equal(rig.starts(), 1);
  });

  for (const resource of ['nodes', 'csinodes']) {
    test(`gives an attempt up after ten seconds, with the reason why there are no ${resource}`, async () => {
      await using rig = await scene();
      const action = { type: 'status', code: 500, reason: 'InternalError', message: 'etcd is away' } as const;
      rig.api.server.faults.add({ match: { resource }, action });
      const answer = Promise.resolve(rig.topology.requirements(question));
      const rejected = assert.rejects(answer, /^Error: nodes and CSINodes could not be read yet: .*etcd is away/);
      await rig.refused;
      await rig.clock.advance(9_999);
      assert.equal(await Promise.race([answer, Promise.resolve('waits')]), 'waits');
      await rig.clock.advance(1);
      await rejected;
    });
  }

  test('gives an attempt up when the work ends', async () => {
    await using rig = await scene();
    const answer = Promise.resolve(rig.topology.requirements(question));
    rig.end.abort(new Error('shutting down'));
    await assert.rejects(answer, /could not be read yet: shutting down/);
  });
});
