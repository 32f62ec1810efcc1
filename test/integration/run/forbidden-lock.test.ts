/** A process that is not permitted to hold its lock: the event on its Pod, and the metric. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, test } from 'node:test';
import { type Provisioner, runProvisioner, type SignalSource, silentLogger } from '../../../src/index.ts';
import { ForbiddenError } from '../../../src/kube/client/api-error.ts';
import { connect } from '../../../src/kube/client/connect.ts';
import { KubeClient } from '../../../src/kube/client/kube-client.ts';
import type { ObjectReference } from '../../../src/kube/kube-object.ts';
import { ownPod } from '../../../src/kube/client/own-account.ts';
import { leases } from '../../../src/kube/election/lease-record.ts';
import { ForbiddenLock } from '../../../src/run/leader-events.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { ScriptedServer } from '../../support/fakes/scripted-server.ts';
import { freePort } from '../../support/free-ports.ts';

const reviews = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
const collection = '/apis/coordination.k8s.io/v1/namespaces/ns1/leases';
const eventsPath = '/api/v1/namespaces/driver/events';
const user = 'system:serviceaccount:driver:provisioner';
const refusal = `leases.coordination.k8s.io "folders-example-com" is forbidden: User "${user}" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "ns1"`;
const boundToPod = {
  'authentication.kubernetes.io/pod-name': ['provisioner-7c9f-x2x'],
  'authentication.kubernetes.io/pod-uid': ['pod-uid-1'],
};
const pod = { apiVersion: 'v1', kind: 'Pod', namespace: 'driver', name: 'provisioner-7c9f-x2x', uid: 'pod-uid-1' };

interface SentEvent {
  involvedObject: ObjectReference;
  type: string;
  reason: string;
  message: string;
}

/** An API server that says who asks; where it does not serve that, `extra` is null. */
async function serverWith(extra: object | null): Promise<ScriptedServer> {
  const server = await ScriptedServer.start();
  if (extra !== null) {
    const status = { userInfo: { username: user, groups: [], extra } };
    server.always({ path: reviews }, (reply) => reply.json(201, { metadata: {}, status }));
  }
  return server;
}

describe('a provisioner without rights on its Lease', () => {
  test('records an event on its Pod and counts the failures', async () => {
    await using server = await serverWith(boundToPod);
    server.otherwise((reply, { method, path, body }) => {
      if (path.startsWith(collection)) reply.status(403, 'Forbidden', { message: refusal });
      else if (method === 'POST') reply.json(201, body);
      else reply.status(404, 'NotFound');
    });
    const provisioner: Provisioner = {
      provision: () => Promise.reject(new Error('no claims')),
      delete: () => Promise.resolve(),
    };
    const signals = new EventEmitter() as EventEmitter & SignalSource;
    using end = new DisposableStack();
    end.defer(() => signals.emit('SIGTERM'));
    const port = await freePort();
    const metrics = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const ended = runProvisioner({
      provisionerName: 'folders.example.com',
      provisioner,
      connection: { master: server.url },
      environment: {},
      leaderElection: { namespace: 'ns1', retryPeriodMs: 50 },
      http: { address: `127.0.0.1:${port}` },
      signals,
      logger: silentLogger,
    });
    const [sent] = await server.requested(1, { method: 'POST', path: eventsPath });
    const { involvedObject, type, reason, message } = sent?.body as SentEvent;
    assert.deepEqual(involvedObject, pod);
    assert.deepEqual({ type, reason }, { type: 'Warning', reason: 'LeaderElectionForbidden' });
    assert.equal(
      message,
      `Not permitted to hold the lease ns1/folders-example-com, so this process provisions nothing: ${refusal}. ` +
        'Grant get, list, watch, create, update on leases.coordination.k8s.io; no restart is needed',
    );
    assert.match(await metrics(), /^leader_election_failures_total\{name="",reason="Forbidden"\} [1-9]\d*$/m);
    await server.requested(20, { path: `${collection}/folders-example-com` });
    assert.equal(server.matching({ path: eventsPath }).length, 1, 'not with each attempt');
    end.dispose();
    assert.equal(await ended, 0);
  });
});

describe('the event about a forbidden lock', () => {
  const request = { verb: 'get', resource: leases, namespace: 'ns1', name: 'lock' };
  const forbidden = new ForbiddenError({ code: 403, reason: 'Forbidden', message: refusal }, request);

  /** Notes failures of an election, and keeps the events. */
  async function noting(extra: object | null) {
    await using opened = new AsyncDisposableStack();
    const server = opened.use(await serverWith(extra));
    const clock = new ManualClock();
    const transport = opened.use(connect({ master: server.url, environment: {}, clock, logger: silentLogger }));
    const about: ObjectReference[] = [];
    const client = new KubeClient({ transport, fieldManager: 'test' });
    const lock = new ForbiddenLock({
      client,
      recorder: { event: (object) => void about.push(object) },
      lock: 'ns1/lock',
      signal: new AbortController().signal,
      clock,
    });
    const stack = opened.move();
    const fail = (times: number, error: unknown = forbidden): void => {
      for (let i = 0; i < times; i++) lock.note(error);
    };
    return { server, clock, client, about, lock, fail, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  }

  test('comes with the third forbidden request in a row, and again after half an hour', async () => {
    await using noted = await noting(boundToPod);
    noted.fail(2);
    noted.lock.note(undefined); // the Lease was written
    noted.fail(2);
    noted.fail(1, new Error('the API server is away'));
    noted.fail(2); // an API server that has just started may forbid anything
    await noted.clock.advance(30 * 60_000);
    noted.fail(1);
    await eventually(() => assert.ok(noted.about.length > 0));
    await noted.clock.advance(30 * 60_000 - 1);
    noted.fail(10);
    await noted.clock.advance(1);
    noted.fail(1);
    await eventually(() => assert.ok(noted.about.length > 1)); // the first is deleted after an hour
    assert.deepEqual(await ownPod(noted.client), pod);
    assert.equal(noted.server.requests.length, 3, 'two for the events');
    assert.deepEqual(noted.about, [pod, pod]);
  });

  for (const { title, extra } of [
    { title: 'the token is bound to no Pod', extra: {} },
    { title: 'the API server is too old to say who asks', extra: null },
  ]) {
    test(`is not recorded where ${title}`, async () => {
      await using noted = await noting(extra);
      noted.fail(3);
      await noted.server.requested(1, { path: reviews });
      await noted.clock.advance(30 * 60_000);
      noted.fail(1);
      await noted.server.requested(2, { path: reviews });
      assert.deepEqual(noted.about, []);
    });
  }
});
