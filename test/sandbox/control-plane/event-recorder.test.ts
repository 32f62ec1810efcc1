import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiServer } from '../../../sandbox/api/api-server.ts';
import { EventRecorder } from '../../../sandbox/control-plane/event-recorder.ts';
import { listObjects } from '../../../sandbox/control-plane/object-access.ts';
import { configMaps, eventsResource } from './cluster.ts';
import { ManualClock } from './manual-clock.ts';

test('an object gets 25 events, then one per 300 s, however many others there are', async () => {
  await using server = new ApiServer();
  const client = server.client('test');
  const clock = new ManualClock();
  const recorder = new EventRecorder({ client, clock, component: 'test-controller' });
  const create = (name: string): ReturnType<typeof client.create> =>
    client.create(configMaps, { metadata: { name, namespace: 'default' } });
  const [noisy, quiet] = [create('noisy'), create('quiet')];
  const count = (name: string): number | undefined =>
    listObjects(client, eventsResource).find(({ involvedObject }) => involvedObject.name === name)?.count;

  for (let i = 0; i < 40; i++) recorder.normal(noisy, 'Again', 'the same');
  recorder.warning(quiet, 'Once', 'another');
  assert.equal(count('noisy'), 25);
  assert.equal(count('quiet'), 1);
  clock.advance(299_000);
  recorder.normal(noisy, 'Again', 'the same');
  assert.equal(count('noisy'), 25);
  clock.advance(2000);
  recorder.normal(noisy, 'Again', 'the same');
  recorder.normal(noisy, 'Again', 'the same');
  assert.equal(count('noisy'), 26);
});
