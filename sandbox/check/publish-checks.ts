import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Bench } from './bench.ts';
import type { Check, Findings } from './check.ts';
import { expectCode, expectOk } from './expected-code.ts';
import { mapBytes, maxMapBytes } from './size-limits.ts';
import { CheckSkipped } from './outcome.ts';

const section = 'ControllerPublishVolume';

export const publishChecks: readonly Check[] = [
  {
    id: 'publish',
    title: 'a volume is published to its node, and again with the same response',
    section,
    part: 'driver',
    needs: ['create'],
    run: publish,
  },
  {
    id: 'publish-unknown',
    title: 'a volume or a node that does not exist is NOT_FOUND',
    section: 'ControllerPublishVolume Errors',
    part: 'driver',
    needs: ['create', 'publish'],
    async run(bench, findings) {
      const { id, volume } = await bench.create();
      const noVolume = await bench.tryPublish(randomUUID(), bench.facts.nodeId, {});
      expectCode(findings, noVolume, ['NOT_FOUND'], 'of a volume that does not exist');
      const noNode = await bench.tryPublish(id, `csi-sandbox-${randomUUID()}`, volume);
      expectCode(findings, noNode, ['NOT_FOUND'], 'to a node that does not exist');
    },
  },
  {
    id: 'unpublish-repeat',
    title: 'a volume that is not published is unpublished with OK',
    section: 'ControllerUnpublishVolume',
    part: 'driver',
    needs: ['create', 'publish'],
    async run(bench, findings) {
      const { id, volume } = await bench.create();
      const { nodeId } = bench.facts;
      bench.ok(await bench.tryPublish(id, nodeId, volume));
      expectOk(bench, findings, await bench.tryUnpublish(id, nodeId), 'once');
      expectOk(bench, findings, await bench.tryUnpublish(id, nodeId), 'the second time');
      await bench.delete(id);
      const gone = await bench.tryUnpublish(id, nodeId);
      if (!gone.ok) findings.warn(`unpublishing a volume that was deleted: ${bench.described(gone)}`);
    },
  },
];

async function publish(bench: Bench, findings: Findings): Promise<void> {
  if (!bench.facts.controller.has('PUBLISH_UNPUBLISH_VOLUME')) {
    throw new CheckSkipped(
      'the driver has no PUBLISH_UNPUBLISH_VOLUME; the node calls mount, so they are left to csi-sanity',
    );
  }
  const { nodeId } = bench.facts;
  if (nodeId === '') throw new CheckSkipped('no node id is known: there is no node service at this socket');
  const { id, volume } = await bench.create();
  const first = bench.ok(await bench.tryPublish(id, nodeId, volume));
  const bytes = mapBytes(first.publish_context);
  if (bytes > maxMapBytes)
    findings.fail(`publish_context has ${bytes} bytes; at most ${maxMapBytes} are allowed`, 'Size Limits');
  const again = await bench.tryPublish(id, nodeId, volume);
  expectOk(bench, findings, again, 'the second time');
  if (again.ok && !isDeepStrictEqual(again.response.publish_context ?? {}, first.publish_context ?? {})) {
    findings.fail('the repeated ControllerPublishVolume returned another publish_context');
  }
  expectOk(bench, findings, await bench.tryUnpublish(id, nodeId), 'after that');
}
