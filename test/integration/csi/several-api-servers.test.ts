/** API servers that differ, behind one address, as during the upgrade of a control plane. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../src/base/logger.ts';
import { OptionalApi } from '../../../src/csi/optional-api.ts';
import {
  FoundAttributesClassApi,
  mutableParameters,
  olderAttributesClassVersions,
  volumeAttributesClasses,
} from '../../../src/csi/volume-attributes-class.ts';
import { connect } from '../../../src/kube/client/connect.ts';
import { KubeClient } from '../../../src/kube/client/kube-client.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type Answer, ScriptedServer } from '../../support/fakes/scripted-server.ts';
import { startBalancer } from '../../support/tcp-balancer.ts';

const group = '/apis/storage.k8s.io';
const parameters = { iops: '9' };

/** An API server that has the class, and serves it in these versions. */
async function startServer(versions: readonly string[]): Promise<ScriptedServer> {
  const server = await ScriptedServer.start();
  server.always({ path: group }, (reply) => reply.json(200, {}));
  for (const version of versions) {
    const resources = [{ kind: volumeAttributesClasses.kind }];
    server.always({ path: `${group}/${version}` }, (reply) => reply.json(200, { resources }));
    const found = { kind: volumeAttributesClasses.kind, metadata: { name: 'gold' }, driverName: 'drv', parameters };
    const path = `${group}/${version}/volumeattributesclasses/gold`;
    server.always({ path }, (reply) => reply.json(200, found));
  }
  return server;
}

/** Servers behind a balancer, and a client that knows its address. */
async function startServers(...versions: (readonly string[])[]) {
  const servers = await Promise.all(versions.map(startServer));
  const balancer = await startBalancer(servers.map(({ url }) => Number(new URL(url).port)));
  const parts = { clock: new ManualClock(), logger: silentLogger };
  const transport = connect({ ...parts, master: `http://127.0.0.1:${balancer.port}`, environment: {} });
  const client = new KubeClient({ transport, fieldManager: 'test' });
  const found = new OptionalApi({
    ...{ ...parts, client, resource: volumeAttributesClasses, olderVersions: olderAttributesClassVersions },
    asksTwice: true,
  });
  return {
    servers,
    balancer,
    client,
    api: new FoundAttributesClassApi({ ...parts, api: found }),
    async [Symbol.asyncDispose]() {
      await transport[Symbol.asyncDispose]();
      await balancer[Symbol.asyncDispose]();
      for (const server of servers) await server[Symbol.asyncDispose]();
    },
  };
}

describe('API servers that differ, behind one address', () => {
  test('a request over a connection of its own goes to the next one, and the connection is closed', async () => {
    await using rig = await startServers([], []);
    for (let number = 0; number < 4; number++) {
      await assert.rejects(rig.client.raw('/apis/nothing', { newConnection: true }));
    }
    assert.deepEqual(rig.balancer.accepted, [2, 2]);
    for (const { requests } of rig.servers) {
      assert.deepEqual(
        requests.map(({ headers }) => headers.connection),
        ['close', 'close'],
      );
    }
  });

  for (const [first, second] of [
    [['v1'], []],
    [[], ['v1']],
    [[], ['v1beta1']],
    [['v1beta1'], []],
    [['v1'], ['v1beta1']],
    [['v1beta1'], ['v1']],
  ] as const) {
    const title = [first, second].map((versions) => versions.join() || 'none').join(' and ');
    test(`attributes classes in ${title}: they are found, and a class is read in each attempt`, async () => {
      await using rig = await startServers(first, second);
      const { client, api } = rig;
      assert.equal(await api.check(), 'present');
      for (let attempt = 0; attempt < 8; attempt++) {
        assert.ok(await api.appliesTo('uid'));
        assert.deepEqual(await mutableParameters({ client, api, name: 'gold', driverName: 'drv' }), parameters);
        if (attempt % 3 === 2) await client.raw(group, { newConnection: true }); // the next one is for the other server
      }
    });
  }

  test('a class that the older one cannot read, as the newer one has saved it, is read from that', async () => {
    await using rig = await startServers(['v1beta1'], ['v1']);
    const { client, api, servers } = rig;
    const message = 'no kind "VolumeAttributesClass" is registered for version "storage.k8s.io/v1"';
    const unreadable: Answer = (reply) => reply.status(500, 'InternalError', { message });
    servers[0]?.next({ path: `${group}/v1beta1/volumeattributesclasses/gold` }, ...Array<Answer>(20).fill(unreadable));
    assert.equal(await api.check(), 'present');
    for (let attempt = 0; attempt < 4; attempt++) {
      assert.deepEqual(await mutableParameters({ client, api, name: 'gold', driverName: 'drv' }), parameters);
    }
  });
});
