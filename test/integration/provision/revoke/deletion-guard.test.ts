import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { silentLogger as logger } from '../../../../src/base/logger.ts';
import { connect } from '../../../../src/kube/client/connect.ts';
import { KubeClient } from '../../../../src/kube/client/kube-client.ts';
import { DeletionGuard, type DeletionGuardOptions } from '../../../../src/provision/revoke/deletion-guard.ts';

/** A guard behind something that gives this response to every request. */
async function guarded(answer: unknown) {
  const stack = new AsyncDisposableStack();
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const transport = stack.use(connect({ master: `http://127.0.0.1:${port}`, environment: {}, logger }));
  const client = new KubeClient({ transport, fieldManager: 'test' });
  // `wish` reads the claim, and asks nobody else about one that is not there
  const parts = { client, provisioner: {}, isKnownProvisioner: () => true };
  return { guard: new DeletionGuard(parts as unknown as DeletionGuardOptions), stack };
}

const signal = new AbortController().signal;
const claim = { namespace: 'ns', name: 'a', uid: 'u' };

for (const [what, answer] of [
  ['is no object', {}],
  ['has another name', { metadata: { name: 'b', uid: 'v' }, spec: {} }],
  ['has no UID', { metadata: { name: 'a' }, spec: {} }],
] as const) {
  test(`a response that ${what} does not count as that of a claim that is gone`, async () => {
    const { guard, stack } = await guarded(answer);
    await using _stack = stack;
    await assert.rejects(guard.wish({ claim }, signal), /the API server's response is not the claim ns\/a/);
  });
}

test('a claim of the same name that was created since is another one: the first is gone', async () => {
  const { guard, stack } = await guarded({ metadata: { name: 'a', uid: 'v' }, spec: {} });
  await using _stack = stack;
  assert.equal(await guard.wish({ claim }, signal), 'gone');
});
