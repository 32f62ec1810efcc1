/** The API server stores something else than was sent, as with an admission webhook that changes objects. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { connect } from '../../../../src/kube/client/connect.ts';
import { KubeClient } from '../../../../src/kube/client/kube-client.ts';
import { never, prefix, recordOf, Rig, uidOf } from './rig.ts';

interface Annotated {
  metadata: { annotations?: Record<string, string> };
}

/** Stands before an API server, and has a webhook's say about what is updated. */
async function webhookBefore(url: string, change: (object: Annotated) => void): Promise<Server> {
  const server = createServer((request, response) => {
    void (async () => {
      const { method = 'GET', url: path = '/', headers } = request;
      const isWrite = method === 'PUT' || method === 'POST';
      const object = isWrite ? ((await json(request)) as Annotated) : undefined;
      if (method === 'PUT' && object !== undefined) change(object);
      const { accept = '', 'content-type': type = '' } = headers;
      const sent = { accept, ...(isWrite && { 'content-type': type }) };
      const answer = await fetch(url + path, {
        method,
        headers: sent,
        ...(isWrite && { body: JSON.stringify(object) }),
      });
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
      response.end(Buffer.from(await answer.arrayBuffer()));
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

test('a record that is stored without what was sent is no protection, which is logged', async () => {
  await using rig = await Rig.start();
  let isActive = false;
  await using webhook = await webhookBefore(rig.url, ({ metadata: { annotations = {} } }) => {
    if (isActive) annotations[prefix + uidOf(1)] = '{}';
  });
  const { port } = webhook.address() as AddressInfo;
  await using transport = connect({ master: `http://127.0.0.1:${port}`, environment: {} });
  const process = await rig.open({ client: new KubeClient({ transport, fieldManager: 'test' }) });
  assert.equal(await process.journal.put(recordOf(2), never), 'durable');
  isActive = true;
  assert.equal(await process.journal.put(recordOf(1), never), 'unprotected');
  const error = process.log.find(({ level }) => level === 'error');
  assert.match(String((error?.fields as { err?: Error }).err), /without annotation .*an admission webhook or policy/);
  assert.deepEqual(process.protected, [true, false]);
});
