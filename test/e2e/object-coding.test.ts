/** Every kind that is read as protobuf, from the real API server: the same objects as in JSON. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { Credentials } from '../../src/kube/credentials/credentials.ts';
import { loadKubeConfig } from '../../src/kube/credentials/kube-config.ts';
import { KubeClient } from '../../src/kube/client/kube-client.ts';
import type { Cluster } from '../support/cluster.ts';
import { startCluster } from '../support/start-cluster.ts';
import { CodedCaches } from '../support/coded-caches.ts';
import { codedKinds, codedNamespace, createCoded } from '../support/coded-objects.ts';
import { eventually } from '../support/eventually.ts';
import { CodingTransport } from '../support/fakes/coding-transport.ts';

const isReal = process.env['E2E_TARGET'] === 'kubernetes';

describe('objects in protobuf', { skip: isReal ? false : 'the sandbox answers JSON' }, () => {
  const kinds = codedKinds(`coding-${randomBytes(4).toString('hex')}`);
  let cluster: Cluster;
  let credentials: Credentials;
  let admin: CodingTransport;
  let client: KubeClient;

  before(async () => {
    cluster = await startCluster();
    credentials = new Credentials({
      load: () => loadKubeConfig({ kubeconfig: cluster.adminKubeconfig, environment: {} }),
      clock: systemClock,
      logger: silentLogger,
    });
    admin = transport();
    client = new KubeClient({ transport: admin, fieldManager: 'e2e' });
    for (const kind of kinds) await createCoded(client, kind);
  });

  after(async () => {
    await patchAll({ metadata: { finalizers: null } });
    for (const { resource, objects } of kinds) {
      for (const { object } of objects) {
        const where = { namespace: codedNamespace, name: object.metadata.name };
        await client.delete(resource, where).catch(() => undefined);
      }
    }
    await admin[Symbol.asyncDispose]();
    await cluster.stop();
  });

  function transport(without?: ConstructorParameters<typeof CodingTransport>[1]): CodingTransport {
    return new CodingTransport({ credentials, userAgent: 'e2e', clock: systemClock, logger: silentLogger }, without);
  }

  async function patchAll(body: object): Promise<void> {
    for (const { resource, objects } of kinds) {
      for (const { object } of objects) {
        const where = { namespace: codedNamespace, name: object.metadata.name };
        await client.patch(resource, where, { type: 'merge', body });
      }
    }
  }

  /** @param old - what the caches held before a change of every object, which they must have heard of. */
  async function assertSame(inProtobuf: CodedCaches, inJson: CodedCaches, old?: readonly object[]): Promise<void> {
    for (const [index, kind] of kinds.entries()) {
      const { plural } = kind.resource;
      await eventually(() => {
        const want = inJson.content(kind);
        assert.equal(Object.keys(want).length, kind.objects.length, plural);
        assert.notDeepEqual(want, old?.[index]);
        assert.deepEqual(inProtobuf.content(kind), want);
      });
      assert.equal(inProtobuf.transport.codings.get(plural), 'protobuf');
      assert.equal(inJson.transport.codings.get(plural), 'json');
    }
  }

  for (const { what, make } of [
    { what: 'whole', make: (over: CodingTransport) => CodedCaches.ofWholeObjects(over, kinds) },
    { what: 'in the caches of the sidecar', make: (over: CodingTransport) => CodedCaches.ofSidecar(over) },
  ]) {
    for (const { how, without } of [
      { how: 'listed', without: { streamedLists: true } },
      { how: 'streamed', without: {} },
    ]) {
      test(`${what}, ${how} and then watched, are the same as those in JSON`, async () => {
        await using inProtobuf = make(transport(without));
        await using inJson = make(transport({ ...without, protobuf: true }));
        await assertSame(inProtobuf, inJson);
        const old = kinds.map((kind) => inJson.content(kind));
        await patchAll({ metadata: { labels: { changed: `${how}-${what.length}` } } });
        await assertSame(inProtobuf, inJson, old);
      });
    }
  }
});
