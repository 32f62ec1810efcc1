import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { ApiGate, type Stop } from '../../../src/testing/api-gate.ts';

/** A server that keeps what it has received, and the gate before it. */
async function openGate() {
  const received: string[] = [];
  const server = createServer((request, response) => {
    received.push(`${request.method} ${request.url}`);
    response.end('{}');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const gate = await ApiGate.start(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const close = async (): Promise<void> => {
    await gate[Symbol.asyncDispose]();
    server.closeAllConnections();
    server.close();
  };
  return { gate, received, [Symbol.asyncDispose]: close };
}

const post = (url: string, signal?: AbortSignal): Promise<Response> =>
  fetch(`${url}/api/v1/persistentvolumes?a=b`, { method: 'POST', body: '{"a":1}', ...(signal && { signal }) });
const stopAt = (holds: Stop['holds']): Stop => ({
  holds,
  matches: ({ method, path, body }) =>
    method === 'POST' && path === '/api/v1/persistentvolumes' && (body as { a: number }).a === 1,
});

for (const [holds, arrives] of [
  ['request', []],
  ['response', ['POST /api/v1/persistentvolumes?a=b']],
] as const) {
  test(`holds a ${holds} until its sender is gone, and lets everything else pass`, async () => {
    await using scene = await openGate();
    const { gate, received } = scene;
    const held = gate.hold(stopAt(holds));
    const killed = new AbortController();
    const sending = post(gate.url, killed.signal);
    await held.reached;
    assert.deepEqual(received, arrives);
    assert.equal((await fetch(`${gate.url}/version`)).status, 200);
    killed.abort();
    await assert.rejects(sending, { name: 'AbortError' });
    assert.equal((await post(gate.url)).status, 200); // only one is held
  });
}

test('holds nothing any more once it is released', async () => {
  await using scene = await openGate();
  scene.gate.hold(stopAt('request')).release();
  assert.equal((await post(scene.gate.url)).status, 200);
});
