/** `why` on a cluster of 10,000 claims in use: what it costs the API server. `npm run bench:why` measures the time. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startCrowdedCluster, type CrowdedCluster } from '../support/crowded-cluster.ts';
import { why } from '../support/why-command.ts';

const isReal = process.env['E2E_TARGET'] === 'kubernetes';
const skip = isReal ? false : 'only the real control plane has an etcd that so many objects can be written into';

describe(
  'why among 10,000 bound claims, their attachments, and 5,000 events and Pods of the namespace',
  { skip },
  () => {
    let crowd: CrowdedCluster;
    before(async () => {
      crowd = await startCrowdedCluster({ claims: 10_000, events: 5_000 });
    });
    after(() => crowd[Symbol.asyncDispose]());

    for (const { what, cause } of [
      { what: 'bound', cause: 'bound' },
      { what: 'waiting', cause: 'waits-for-consumer' },
      { what: 'failing', cause: 'driver-error' },
      { what: 'leftover', cause: 'delete-error' },
    ] as const) {
      test(`needs fewer than 15 requests to name ${cause}, and lists neither claims nor volumes`, async (t) => {
        const earlier = (await crowd.requests()).length;
        const startMs = performance.now();
        const explanation = await why(crowd.kubeconfig, crowd[what]);
        const tookMs = performance.now() - startMs;
        assert.equal(explanation.cause, cause, JSON.stringify(explanation));
        assert.deepEqual(
          explanation.steps.filter(({ step, state }) => state === 'unknown' && step !== 'secret'),
          [],
          'it could read everything but Secrets',
        );
        const requests = (await crowd.requests()).slice(earlier);
        const paths = requests.map(({ requestURI }) => requestURI);
        t.diagnostic(`${tookMs.toFixed(0)} ms with the start of the process, ${requests.length} requests`);
        assert.ok(requests.length > 0 && requests.length < 15, paths.join('\n'));
        for (const { verb, objectRef } of requests) {
          assert.ok(verb === 'get' || verb === 'list', verb);
          assert.ok(verb === 'get' || objectRef?.resource?.startsWith('persistentvolume') !== true, paths.join('\n'));
        }
      });
    }

    test('reads the events of the namespace only for a claim that has been handed to its provisioner', async () => {
      const lists = async (): Promise<number> =>
        (await crowd.requests()).filter(({ objectRef }) => objectRef?.resource === 'events').length;
      const earlier = await lists();
      await why(crowd.kubeconfig, crowd.waiting);
      assert.equal(await lists(), earlier);
      await why(crowd.kubeconfig, crowd.failing);
      assert.equal(await lists(), earlier + 1);
    });
  },
);
