/** Writes that need a permit, on their way through client and transport. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Permit } from '../../../src/base/permit.ts';
import { KubeClient } from '../../../src/kube/client/kube-client.ts';
import type { Answer, ScriptedReply } from '../../support/fakes/scripted-server.ts';
import { configMap, configMaps, Rig } from './rig.ts';

const name = { namespace: 'ns', name: 'a' };
const ok: Answer = (reply) => reply.json(200, configMap('a', 7));

/** A permit that the test switches. */
class SwitchedPermit implements Permit {
  isValid = true;
  asked = 0;
  #next = Promise.withResolvers<undefined>();

  lapse(): void {
    this.isValid = false;
  }

  renew(): void {
    this.isValid = true;
    this.#next.resolve(undefined);
    this.#next = Promise.withResolvers();
  }

  async renewed(signal: AbortSignal | undefined): Promise<void> {
    this.asked++;
    const { promise, reject } = this.#next;
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    await promise;
  }
}

function clientOf(rig: Rig, permit: Permit, transport = rig.transport): KubeClient {
  return new KubeClient({ transport, fieldManager: 'test', permit });
}

describe('a client with a permit', () => {
  for (const { what, write } of [
    { what: 'a POST', write: (client: KubeClient) => client.create(configMaps, configMap('a', 0)) },
    {
      what: 'a PATCH',
      write: (client: KubeClient) => client.patch(configMaps, name, { type: 'merge', body: {} }),
    },
    { what: 'a PUT', write: (client: KubeClient) => client.update(configMaps, configMap('a', 1)) },
    { what: 'a DELETE', write: (client: KubeClient) => client.delete(configMaps, name) },
  ]) {
    test(`sends ${what} once the permit is valid`, async () => {
      await using rig = await Rig.start();
      rig.server.next({}, ok);
      const permit = new SwitchedPermit();
      permit.lapse();
      const written = write(clientOf(rig, permit));
      await rig.clock.advance(60_000);
      assert.equal(rig.server.requests.length, 0);
      permit.renew();
      await written;
      assert.equal(rig.server.requests.length, 1);
    });
  }

  test('reads without it', async () => {
    await using rig = await Rig.start();
    rig.server.next({}, ok);
    const permit = new SwitchedPermit();
    permit.lapse();
    await clientOf(rig, permit).get(configMaps, name);
    assert.equal(permit.asked, 0);
  });

  test('looks at it again before a write is repeated', async () => {
    await using rig = await Rig.start();
    const later: Answer = (reply) => reply.status(429, 'TooManyRequests', { headers: { 'retry-after': '2' } });
    rig.server.next({}, later, ok);
    const permit = new SwitchedPermit();
    const written = clientOf(rig, permit).create(configMaps, configMap('a', 0));
    await rig.clock.until(() => rig.server.requests.length === 1);
    permit.lapse();
    await rig.clock.advance(60_000);
    assert.equal(rig.server.requests.length, 1);
    permit.renew();
    await written;
    assert.equal(rig.server.requests.length, 2);
  });

  test('looks at it again when a connection is free at last', async () => {
    await using rig = await Rig.start();
    const held = Promise.withResolvers<ScriptedReply>();
    rig.server.next({ method: 'PUT' }, (reply) => held.resolve(reply));
    rig.server.next({ method: 'POST' }, ok);
    const permit = new SwitchedPermit();
    await using transport = rig.newTransport({ maxConnections: 1 });
    const client = clientOf(rig, permit, transport);
    const first = client.update(configMaps, configMap('a', 1));
    const reply = await held.promise;
    const second = client.create(configMaps, configMap('b', 0));
    await rig.clock.settle();
    permit.lapse();
    reply.json(200, configMap('a', 2));
    await first;
    await rig.clock.advance(1000);
    assert.deepEqual(
      rig.server.requests.map(({ method }) => method),
      ['PUT'],
    );
    assert.equal(permit.asked, 1);
    permit.renew();
    await second;
    assert.deepEqual(
      rig.server.requests.map(({ method }) => method),
      ['PUT', 'POST'],
    );
  });

  test('waits no longer once the transport is fenced', async () => {
    await using rig = await Rig.start();
    const permit = new SwitchedPermit();
    permit.lapse();
    const written = clientOf(rig, permit).create(configMaps, configMap('a', 0));
    rig.transport.fence(new Error('the lease is lost'));
    await assert.rejects(written, /the lease is lost/);
    assert.equal(rig.server.requests.length, 0);
  });
});
