import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { type CapacityApi, CapacityApiError, detectCapacityApi } from '../../../src/capacity/api-version.ts';
import { connect } from '../../../src/kube/client/connect.ts';
import { KubeClient } from '../../../src/kube/client/kube-client.ts';

/** What comes of the API server's answer to the probe. */
async function detectedFrom(code: number, body: object | string): Promise<CapacityApi> {
  const sent: unknown[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      sent.push({ path: request.url?.replace(/\?.*/, ''), body: JSON.parse(text) as unknown });
      response
        .writeHead(code, { 'content-type': 'application/json' })
        .end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const master = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await using transport = connect({ master, environment: {} });
  try {
    return await detectCapacityApi({ client: new KubeClient({ transport, fieldManager: 'test' }), namespace: 'ns' });
  } finally {
    server.close();
    server.closeAllConnections();
    const path = '/apis/storage.k8s.io/v1/namespaces/ns/csistoragecapacities';
    assert.deepEqual(sent[0], { path, body: { metadata: { name: '#%123-invalid-name', namespace: 'ns' } } });
  }
}

const failure = (code: number, reason: string, details: object = {}): object => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  message: 'words',
  ...(reason !== '' && { reason }),
  code,
  details,
});

describe('detectCapacityApi', () => {
  const answers: [name: string, code: number, body: object | string, want: CapacityApi][] = [
    ['Invalid', 422, failure(422, 'Invalid'), { version: 'v1', namespaceMissing: false }],
    ['422 without reason', 422, failure(422, ''), { version: 'v1', namespaceMissing: false }],
    ['NotFound', 404, failure(404, 'NotFound'), { version: 'v1beta1', namespaceMissing: false }],
    ['404 without reason', 404, failure(404, ''), { version: 'v1beta1', namespaceMissing: false }],
    ['404 without Status', 404, '404 page not found', { version: 'v1beta1', namespaceMissing: false }],
    [
      'a missing namespace',
      404,
      failure(404, 'NotFound', { name: 'ns', kind: 'namespaces' }),
      { version: 'v1', namespaceMissing: true },
    ],
  ];
  for (const [name, code, body, want] of answers) {
    test(`reads ${name}`, async () => {
      assert.deepEqual(await detectedFrom(code, body), want);
    });
  }

  for (const [code, reason] of [
    [403, 'Forbidden'],
    [401, 'Unauthorized'],
    [500, 'InternalError'],
  ] as const) {
    test(`gives up on ${reason}`, async () => {
      const message = 'unexpected error when checking for the V1 CSIStorageCapacity API: words';
      await assert.rejects(detectedFrom(code, failure(code, reason)), { name: CapacityApiError.name, message });
    });
  }

  test('gives up on a server that creates it', async () => {
    await assert.rejects(detectedFrom(201, { metadata: { name: 'x' } }), {
      name: CapacityApiError.name,
      message: `creating an invalid v1.CSIStorageCapacity didn't fail as expected, got: {"metadata":{"name":"x"}}`,
    });
  });
});
