/** Leader election of the whole program against the sandbox's API, requests recorded. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Environment } from '../../../src/cli/config.ts';
import { ownNamespace, sanitised } from '../../../src/run/lock-name.ts';
import type { CoreV1Event } from '@kubernetes/client-node';
import type { Lease, LeaseRecord } from '../../../src/kube/election/lease-record.ts';
import { RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { Program } from '../../support/program.ts';
import { StoredCluster } from '../csi/stored-cluster.ts';
import { Bulletin } from '../../support/bulletin.ts';
import { freePort } from '../../support/free-ports.ts';
import { type SentRequest, Wire } from '../provision/wire.ts';

const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };
const events = { group: '', version: 'v1', plural: 'events' };
// A busy machine must not make a leader late.
const timings = [
  '--leader-election-lease-duration=59900ms',
  '--leader-election-renew-deadline=50s',
  '--leader-election-retry-period=500ms',
];
const self = os
  .hostname()
  .replaceAll(/[^a-zA-Z0-9-]/g, '-')
  .replace(/-$/, '-X');

interface Options {
  name?: string;
  flags?: string[];
  environment?: Environment;
  /** The Lease that is there before, in namespace ns1. */
  lease?: { labels?: Record<string, string>; spec: LeaseRecord };
}

async function start({ name = 'd.example.com', flags = [], environment = {}, lease }: Options = {}) {
  await using opened = new AsyncDisposableStack();
  const driver = opened.use(await RecordingDriver.start({ name }));
  const cluster = opened.use(await StoredCluster.start([]));
  const api = cluster.server.client('test');
  const bulletin = new Bulletin();
  for (const resource of [leases, events]) api.subscribe(resource, bulletin.notify);
  if (lease !== undefined) {
    const metadata = { namespace: 'ns1', name: 'd-example-com', ...(lease.labels && { labels: lease.labels }) };
    const object = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: lease.spec };
    api.create(leases, object);
  }
  const wire = opened.use(new Wire({ origin: cluster.url, onAnswer: bulletin.notify }));
  const run = (): Program =>
    new Program({
      socketPath: driver.socketPath,
      apiUrl: cluster.url,
      flags: ['--leader-election', '--leader-election-namespace=ns1', ...timings, ...flags],
      environment,
    });
  const program = opened.use(run());
  const stack = opened.move();
  /** Requests about the one Lease; the standby's watch of the collection is left out. */
  const requests = (): SentRequest[] =>
    wire.requests.filter(
      ({ path, bodyText }) =>
        /\/leases(\/[^?]*)?(\?fieldManager=[^&]*)?$/.test(path) && !`${path} ${bodyText}`.includes('-journal-'),
    );
  return {
    driver,
    api,
    wire,
    program,
    /** Another process of the same host. */
    again: run,
    requests,
    stored: () => api.list(leases).filter(({ metadata }) => !metadata.name.includes('-journal-')) as unknown as Lease[],
    until: <T>(what: string, read: () => T | undefined | false) => bulletin.until(what, read),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const bodyOf = (request: SentRequest | undefined): Lease => request?.body as unknown as Lease;

describe('the Lease of leader election', () => {
  for (const { driver, want, warns } of [
    { driver: 'hostpath.csi.k8s.io', want: 'hostpath-csi-k8s-io', warns: false },
    { driver: 'a/b.c', want: 'a-b-c', warns: false },
    { driver: 'drv_', want: 'drv-x', warns: true },
    { driver: 'Upper.Example', want: 'upper-example', warns: true },
  ]) {
    test(`${driver} gives the Lease ${want}${warns ? ', with one warning' : ''}`, async () => {
      await using started = await start({ name: driver });
      const [lease] = await started.until('a Lease', () => started.stored().length > 0 && started.stored());
      assert.equal(lease?.metadata.name, want);
      const warnings = started.program.lines.filter((line) => line.includes('gives no valid Lease name'));
      assert.equal(warnings.length, warns ? 1 : 0);
    });
  }

  for (const { title, flags, environment, want } of [
    { title: '--leader-election-namespace', flags: [], environment: { POD_NAMESPACE: 'ns2' }, want: 'ns1' },
    {
      title: 'POD_NAMESPACE without the flag',
      flags: ['--leader-election-namespace='],
      environment: { POD_NAMESPACE: 'ns2', NAMESPACE: 'ns1' },
      want: 'ns2',
    },
    {
      title: '`default` without either, never NAMESPACE',
      flags: ['--leader-election-namespace='],
      environment: { NAMESPACE: 'ns1' },
      want: 'default',
    },
  ]) {
    test(`its namespace is given by ${title}`, async () => {
      await using started = await start({ flags, environment });
      const [lease] = await started.until('a Lease', () => started.stored().length > 0 && started.stored());
      assert.equal(lease?.metadata.namespace, want);
    });
  }

  test('its namespace is that of the service account, trimmed; without one it is `default`', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'namespace-'));
    try {
      const file = join(folder, 'namespace');
      assert.equal(ownNamespace(file), 'default');
      await writeFile(file, ' storage\n');
      assert.equal(ownNamespace(file), 'storage');
      await writeFile(file, ' \n');
      assert.equal(ownNamespace(file), 'default');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('its holder is the sanitised hostname, from the kernel and not from HOSTNAME', async () => {
    assert.equal(sanitised('node1.example.com'), 'node1-example-com');
    const before = process.env['HOSTNAME'];
    process.env['HOSTNAME'] = 'somebody-else';
    try {
      await using started = await start();
      const [post] = await started.until('a POST', () => {
        const posts = started.requests().filter(({ method }) => method === 'POST');
        return posts.length > 0 && posts;
      });
      assert.equal(bodyOf(post).spec?.holderIdentity, self);
    } finally {
      if (before === undefined) delete process.env['HOSTNAME'];
      else process.env['HOSTNAME'] = before;
    }
  });
});

describe('what a candidate and a leader send', () => {
  test('a PUT right after the POST, however long the retry period is', async () => {
    const flags = ['lease-duration=3h', 'renew-deadline=2h', 'retry-period=1h'];
    await using started = await start({ flags: flags.map((flag) => `--leader-election-${flag}`) });
    const seen = await started.until('three requests', () => started.requests().length >= 3 && started.requests());
    assert.deepEqual(seen.map(({ method }) => method), ['GET', 'POST', 'PUT']); // prettier-ignore
  });

  test('GET and POST to acquire, a PUT, then one PUT per retry period without GET', async () => {
    const flags = ['--leader-election-labels=team:storage,empty:', '--leader-election-retry-period=2s'];
    await using started = await start({ flags });
    const seen = await started.until('four requests', () => started.requests().length >= 4 && started.requests());
    assert.deepEqual(seen.slice(0, 4).map(({ method }) => method), ['GET', 'POST', 'PUT', 'PUT']); // prettier-ignore
    for (const { path } of seen.slice(1)) assert.match(path, /\?fieldManager=csi-provisioner$/);
    const [, post, atOnce, second] = seen.map(bodyOf);
    assert.ok(post?.spec);
    assert.deepEqual(post.metadata.labels, { team: 'storage', empty: '' });
    assert.equal(post.spec.leaseDurationSeconds, 59, 'whole seconds, truncated');
    assert.equal(post.spec.leaseTransitions, 0);
    assert.match(post.spec.acquireTime ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    assert.equal(post.spec.renewTime, post.spec.acquireTime);
    const renewedMs = (lease: Lease | undefined): number => Date.parse(lease?.spec?.renewTime ?? '');
    const pauseMs = renewedMs(second) - renewedMs(atOnce);
    assert.ok(pauseMs >= 1990, `a renewal after ${pauseMs} ms`);
    for (const put of [atOnce, second]) {
      assert.deepEqual({ ...put?.spec, renewTime: '' }, { ...post.spec, renewTime: '' });
      assert.ok(put?.metadata.resourceVersion, 'a PUT names the version it replaces');
    }
  });

  test('each update overwrites only the labels that are given', async () => {
    await using started = await start({
      flags: ['--leader-election-labels=team:storage'],
      lease: { labels: { team: 'other', kept: 'yes' }, spec: { holderIdentity: '', leaseTransitions: 4 } },
    });
    await started.program.logged('Successfully acquired lease');
    assert.deepEqual(started.stored()[0]?.metadata.labels, { team: 'storage', kept: 'yes' });
    assert.equal(started.stored()[0]?.spec?.leaseTransitions, 5, 'an empty holder: taken over at once, counted');
    const [lease] = started.stored();
    assert.ok(lease);
    started.api.update(leases, { ...lease, metadata: { ...lease.metadata, labels: { more: '1' } } } as never);
    await started.until('the label again', () => started.stored()[0]?.metadata.labels?.['team'] === 'storage');
    assert.deepEqual(started.stored()[0]?.metadata.labels, { team: 'storage', more: '1' });
  });

  test('a restarted container resumes its own lease at once, acquireTime and transitions kept', async () => {
    await using started = await start({
      flags: ['--feature-gates=ReleaseLeaderElectionOnExit=false'],
      lease: { spec: { holderIdentity: '', leaseTransitions: 6 } },
    });
    await started.until('a renewal', () => started.requests().filter(({ method }) => method === 'PUT').length >= 2);
    started.program.signal('SIGTERM');
    await started.program.ended;
    const { acquireTime } = started.stored()[0]?.spec ?? {};
    const from = started.requests().length;
    await using next = started.again();
    await next.logged('Successfully acquired lease');
    assert.deepEqual(started.requests().slice(from, from + 2).map(({ method }) => method), ['GET', 'PUT']); // prettier-ignore
    const { spec } = bodyOf(started.requests()[from + 1]);
    assert.deepEqual([spec?.acquireTime, spec?.leaseTransitions, spec?.holderIdentity], [acquireTime, 7, self]);
  });

  test('a second process of one host waits as a standby that says so, and works once the first has ended', async () => {
    await using started = await start();
    await started.program.logged('Started provisioner controller');
    await using next = started.again();
    await next.logged('Another process holds the lease with the same identity, waiting as a standby');
    const about = await started.until('the events', () => {
      const waiting = (started.api.list(events) as unknown as CoreV1Event[]).filter(
        ({ reason }) => reason === 'LeaderElectionWaiting',
      );
      return waiting.length >= 2 && waiting;
    });
    assert.deepEqual(
      about.map(({ type, involvedObject, message }) => ({ type, kind: involvedObject.kind, message })),
      [
        {
          type: 'Normal',
          kind: 'Lease',
          message: `A standby waits for another process with its identity ${self}, which has renewed the lease and may still run`,
        },
        {
          type: 'Warning',
          kind: 'Lease',
          message: `A standby waits for another process with its identity ${self}, which holds the lease. Give each Pod a host name of its own (with hostNetwork it has that of the node), or run one replica per node`,
        },
      ],
    );
    assert.equal(next.lines.join('').includes('Started provisioner controller'), false);
    started.program.signal('SIGTERM');
    assert.deepEqual(await started.program.ended, { code: 0 });
    await next.logged('Started provisioner controller');
  });

  test('the event is about the Lease and has its UID, in its namespace, from the unsanitised driver and host', async () => {
    await using started = await start({ name: 'a/b.c' });
    const [event] = await started.until(
      'the event',
      () => started.api.list(events).length > 0 && started.api.list(events),
    );
    const { type, reason, message, source, metadata, involvedObject } = event as unknown as {
      type: string;
      reason: string;
      message: string;
      source: { component: string };
      metadata: { namespace: string };
      involvedObject: { kind: string; name: string; uid?: string };
    };
    assert.deepEqual(
      { type, reason, message, component: source.component, namespace: metadata.namespace },
      {
        type: 'Normal',
        reason: 'LeaderElection',
        message: `${self} became leader`,
        component: `a-b.c/${os.hostname()}`,
        namespace: 'ns1',
      },
    );
    const { uid } = started.stored()[0]?.metadata ?? {};
    assert.ok(uid);
    assert.deepEqual([involvedObject.kind, involvedObject.name, involvedObject.uid], ['Lease', 'a-b-c', uid]);
  });

  test('another holder in the Lease ends the leader with code 1, and the Lease is left alone', async () => {
    await using started = await start();
    await started.program.logged('Started provisioner controller');
    const [lease] = started.stored();
    assert.ok(lease);
    started.api.update(leases, {
      ...lease,
      spec: {
        ...lease.spec,
        holderIdentity: 'thief',
        leaseDurationSeconds: 3600,
        renewTime: '2030-01-01T00:00:00.000000Z',
      },
    } as never);
    assert.deepEqual(await started.program.ended, { code: 1 });
    const text = started.program.lines.join('');
    assert.match(text, /I.*\] "Failed to renew lease" lock="ns1\/d-example-com"/);
    assert.match(text, /E.*\] "Stopped leading"/);
    assert.equal(started.stored()[0]?.spec?.holderIdentity, 'thief');
  });
});

describe('a standby', () => {
  test('asks the driver who it is and serves HTTP, healthy, but reads no claims and takes no work', async () => {
    const port = await freePort();
    await using started = await start({
      flags: [`--http-endpoint=127.0.0.1:${port}`],
      lease: { spec: { holderIdentity: 'other', leaseDurationSeconds: 3600 } },
    });
    await started.program.logged('Attempting to acquire leader lease...');
    await started.until('two looks', () => started.requests().length >= 2);
    assert.deepEqual([...new Set(started.requests().map(({ method }) => method))], ['GET']);
    assert.deepEqual(
      started.driver.calls.map(({ method }) => method),
      ['Probe', 'GetPluginInfo', 'GetPluginCapabilities', 'ControllerGetCapabilities'],
    );
    const others = started.wire.requests.filter(({ path }) => !path.includes('/leases'));
    assert.deepEqual(others.map(({ path }) => path), []); // prettier-ignore
    const health = await fetch(`http://127.0.0.1:${port}/healthz/leader-election`, { method: 'POST' });
    assert.deepEqual([health.status, await health.text()], [200, 'ok']);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    assert.match(metrics, /^leader_election_master_status\{name=""\} 0$/m);
    assert.match(metrics, /^workqueue_depth\{name="claims"\} 0$/m, 'queues stand at zero');
  });

  test('the health path belongs to --http-endpoint with leader election, not to --metrics-address', async () => {
    const port = await freePort();
    await using started = await start({ flags: [`--metrics-address=127.0.0.1:${port}`] });
    await started.program.logged('Started provisioner controller');
    assert.equal((await fetch(`http://127.0.0.1:${port}/healthz/leader-election`)).status, 404);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    assert.match(metrics, /^leader_election_master_status\{name=""\} 1$/m);
  });
});
