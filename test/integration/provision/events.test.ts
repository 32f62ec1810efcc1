import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import { ProvisionError } from '../../../src/provision/provisioner.ts';
import { resource, Rig } from './rig.ts';
import type { SentRequest } from './wire.ts';

const eventsPath = '/api/v1/namespaces/ns/events';

/** A rig whose only claim fails with these texts, one after another, and then stops. */
async function failing(texts: string[], prepare: (rig: Rig) => void = () => undefined): Promise<Rig> {
  const rig = await Rig.prepare({
    controller: { failedProvisionThreshold: 0 },
    limiter: new ExponentialLimiter({ baseMs: 1, maxMs: 1 }),
  });
  rig.addClass();
  rig.addClaim();
  rig.provisioner.provisionSteps.push(...texts.map((text) => new ProvisionError(text, { state: 'finished' })));
  prepare(rig);
  rig.startOnly();
  await rig.until('the calls', () => rig.provisioner.provisions.length === texts.length + 1);
  await rig.stop();
  return rig;
}

/** What was written about events, oldest first. */
function eventWrites(rig: Rig): SentRequest[] {
  return rig.wire.requests.filter(({ method, path }) => method !== 'GET' && path.startsWith(eventsPath));
}

/** Writes of the events with this reason: `[method, count]`. */
function writesOf(rig: Rig, reason: string): [string, number][] {
  const names = new Set<string>();
  return eventWrites(rig).flatMap(({ method, path, body }): [string, number][] => {
    if (method === 'POST' && body.reason === reason) names.add(body.metadata.name);
    const name = method === 'POST' ? body.metadata.name : eventName(path);
    return names.has(name) ? [[method, body.count]] : [];
  });
}

function eventName(path: string): string {
  return path.slice(eventsPath.length + 1).replace(/\?.*/, '');
}

describe('events', () => {
  test('a failure that repeats is one event with a count', async () => {
    await using rig = await failing(Array<string>(6).fill('no room'));
    const counted = [2, 3, 4, 5, 6].map((count): [string, number] => ['PATCH', count]);
    assert.deepEqual(writesOf(rig, 'ProvisioningFailed'), [['POST', 1], ...counted]);
    assert.deepEqual(writesOf(rig, 'Provisioning'), [['POST', 1], ...counted, ['PATCH', 7]]);
    const failed = rig.events.filter(({ reason }) => reason === 'ProvisioningFailed');
    assert.deepEqual(
      failed.map(({ message, count }) => [message, count]),
      [['no room', 6]],
    );
    const [patch] = eventWrites(rig).filter(({ method }) => method === 'PATCH');
    assert.equal(patch?.contentType, 'application/strategic-merge-patch+json');
    assert.deepEqual(Object.keys(patch.body as object).sort(), ['count', 'lastTimestamp', 'message']);
  });

  test('the tenth different text begins an aggregate', async () => {
    await using rig = await failing(Array.from({ length: 11 }, (_, index) => `text ${index + 1}`));
    const posts = eventWrites(rig).filter(
      ({ method, body }) => method === 'POST' && body.reason === 'ProvisioningFailed',
    );
    assert.deepEqual(
      posts.map(({ body }) => body.message),
      [...Array.from({ length: 9 }, (_, index) => `text ${index + 1}`), '(combined from similar events): text 10'],
    );
    assert.deepEqual(
      posts.map(({ body }) => body.reportingComponent === ''),
      [...Array<boolean>(9).fill(false), true],
    );
    const aggregate = posts.at(-1)?.body.metadata.name;
    const patches = eventWrites(rig).filter(({ method, path }) => method === 'PATCH' && eventName(path) === aggregate);
    assert.deepEqual(
      patches.map(({ body }) => [body.count, body.message]),
      [[2, '(combined from similar events): text 11']],
    );
  });

  test('a flood is held back, for each type by itself', async () => {
    await using rig = await failing(Array<string>(40).fill('no room'));
    assert.equal(writesOf(rig, 'Provisioning').length, 25);
    assert.equal(writesOf(rig, 'ProvisioningFailed').length, 25);
    assert.equal(eventWrites(rig).length, 50);
  });

  test('an event that the server forgot is written anew with its count', async () => {
    await using rig = await failing(Array<string>(2).fill('no room'), (it) => {
      it.fault({
        match: { verb: 'patch', resource: 'events' },
        action: { type: 'status', code: 404, reason: 'NotFound' },
        times: 1,
      });
    });
    const [patch, post] = eventWrites(rig).slice(2, 4);
    assert.equal(patch?.method, 'PATCH');
    assert.equal(post?.method, 'POST');
    assert.equal(post.body.metadata.name, eventName(patch.path));
    assert.equal(post.body.count, 2);
    assert.equal(post.body.metadata.resourceVersion, undefined);
  });

  test('an event that was refused is not sent again, and its next occurrence counts it', async () => {
    await using rig = await failing(Array<string>(2).fill('no room'), (it) => {
      it.refuse('create', 'events', { code: 403, reason: 'Forbidden', message: 'no', times: 1 });
    });
    const [refused] = eventWrites(rig);
    assert.equal(refused?.body.reason, 'Provisioning');
    const again = eventWrites(rig).filter(
      ({ method, path, body }) =>
        (method === 'PATCH' ? eventName(path) : body.metadata.name) === refused.body.metadata.name,
    );
    assert.deepEqual(
      again.slice(0, 3).map(({ method, body }) => [method, body.count]),
      [
        ['POST', 1],
        ['PATCH', 2],
        ['POST', 2],
      ],
    );
  });

  test('the shape of an event: who, about what, when', async () => {
    await using rig = await failing(['no room']);
    const post = eventWrites(rig).find(({ body }) => body.reason === 'ProvisioningFailed');
    const { uid } = rig.claim()?.metadata ?? {};
    const { component } = rig.controller;
    assert.match(component, /^drv_.+_[0-9a-f-]{36}$/);
    assert.ok(post);
    const { metadata, firstTimestamp, lastTimestamp, involvedObject, ...rest } = post.body;
    assert.match(metadata.name, /^a\.[0-9a-f]{16}$/);
    assert.equal(metadata.namespace, 'ns');
    assert.match(firstTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.equal(lastTimestamp, firstTimestamp);
    const { resourceVersion, ...about } = involvedObject;
    assert.match(resourceVersion ?? '', /^\d+$/);
    assert.deepEqual(about, { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace: 'ns', name: 'a', uid });
    assert.deepEqual(rest, {
      apiVersion: 'v1',
      kind: 'Event',
      type: 'Warning',
      reason: 'ProvisioningFailed',
      message: 'no room',
      count: 1,
      source: { component },
      reportingComponent: component,
      reportingInstance: '',
    });
    assert.equal(rig.api.list(resource.events).length, 3);
  });

  test('texts arrive unchanged, whatever is in them', async () => {
    const text = `line one\nline two: 100 % "ü" ${'x'.repeat(3000)}`;
    await using rig = await failing([text]);
    assert.ok(rig.events.some(({ message }) => message === text));
  });

  test('a text that is longer than the longest error of a driver is truncated', async () => {
    await using rig = await failing(['x'.repeat(1_000_000)]);
    const want = `${'x'.repeat(65_536)}… (1,000,000 characters)`;
    assert.ok(rig.events.some(({ message }) => message === want));
  });
});
