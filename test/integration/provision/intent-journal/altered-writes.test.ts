/** The API server stores something else than was sent, as with an admission webhook that changes objects. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '../../../../src/kube/client/connect.ts';
import { KubeClient } from '../../../../src/kube/client/kube-client.ts';
import { ApiProxy } from '../../../support/api-proxy.ts';
import { never, prefix, recordOf, Rig, uidOf } from './rig.ts';

test('a record that is stored without what was sent is no protection, which is logged', async () => {
  await using rig = await Rig.start();
  let isActive = false;
  await using webhook = await ApiProxy.start(rig);
  const change = (body: string): string => {
    const object = JSON.parse(body) as { metadata: { annotations: Record<string, string> } };
    object.metadata.annotations[prefix + uidOf(1)] = '{}';
    return JSON.stringify(object);
  };
  webhook.decide = ({ method }) => (isActive && method === 'PUT' ? { request: change } : 'pass');
  await using transport = connect({ master: webhook.url, environment: {} });
  const process = await rig.open({ client: new KubeClient({ transport, fieldManager: 'test' }) });
  assert.equal(await process.journal.put(recordOf(2), never), 'durable');
  isActive = true;
  assert.equal(await process.journal.put(recordOf(1), never), 'unprotected');
  const error = process.log.find(({ level }) => level === 'error');
  assert.match(String((error?.fields as { err?: Error }).err), /without annotation .*an admission webhook or policy/);
  assert.deepEqual(process.protected, [true, false]);
});
