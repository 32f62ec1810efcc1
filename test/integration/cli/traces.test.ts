/** The whole program with the variables of OpenTelemetry: what a receiver gets, and that nothing depends on it. */
import assert from 'node:assert/strict';
import { status } from '@grpc/grpc-js';
import { describe, test } from 'node:test';
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import { startOtlpTraces } from '../../../src/cli/traces/otlp-traces.ts';
import { ClaimTraces } from '../../../src/provision/sync-traces.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { eventually } from '../../support/eventually.ts';
import { DriverFailure } from '../../support/fakes/recording-driver.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { OtlpReceiver, type ReceivedSpan } from '../../support/otlp-receiver.ts';
import { type SidecarProcess, startSidecar } from './sidecar-process.ts';

const core = (plural: string) => ({ group: '', version: 'v1', plural });
const secretValue = 'hunter2hunter2';
const prefix = 'csi.storage.k8s.io/';

const objects: SandboxObject[] = [
  {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'sc' },
    provisioner: 'd.example.com',
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'Immediate',
    parameters: { [`${prefix}provisioner-secret-name`]: 'creds', [`${prefix}provisioner-secret-namespace`]: 'ns1' },
  },
  {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'late' },
    provisioner: 'd.example.com',
    volumeBindingMode: 'WaitForFirstConsumer',
  },
  {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'ns1', name: 'creds' },
    data: { password: Buffer.from(secretValue).toString('base64') },
  },
];

async function traced(
  receiver: OtlpReceiver,
  environment: Record<string, string> = {},
  flags: string[] = [],
): Promise<SidecarProcess> {
  return await startSidecar({
    flags: ['--retry-interval-start=50ms', ...flags],
    objects,
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_SCHEDULE_DELAY: '100', ...environment },
  });
}

function addClaim({ cluster }: SidecarProcess, name = 'data', storageClassName = 'sc'): string {
  const claim = cluster.server.client('test').create(core('persistentvolumeclaims'), {
    metadata: {
      namespace: 'ns1',
      name,
      annotations: { 'volume.kubernetes.io/storage-provisioner': 'd.example.com' },
    },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName },
  });
  return claim.metadata.uid ?? '';
}

/** What the control plane does once the volume is there. */
async function bind(sidecar: SidecarProcess, name = 'data'): Promise<void> {
  const api = sidecar.cluster.server.client('test');
  await eventually(() => assert.equal(api.list(core('persistentvolumes')).length, 1));
  const claim = structuredClone(api.get(core('persistentvolumeclaims'), { namespace: 'ns1', name }));
  assert.ok(claim !== undefined);
  const [volume] = api.list(core('persistentvolumes'));
  api.update(core('persistentvolumeclaims'), {
    ...claim,
    spec: { ...(claim['spec'] as object), volumeName: volume?.metadata.name },
  });
}

const named = (receiver: OtlpReceiver, name: string): ReceivedSpan[] =>
  receiver.spans.filter((span) => span.name === name);

function only(receiver: OtlpReceiver, name: string): ReceivedSpan {
  const found = named(receiver, name);
  assert.equal(found.length, 1, `${found.length} spans ${name} of ${receiver.spans.map((span) => span.name).join()}`);
  return found[0]!;
}

describe('a claim is traced', () => {
  test('from the watch event over queue, secret, driver and volume to the events, in one trace that its UID names', async () => {
    await using receiver = await OtlpReceiver.start();
    await using sidecar = await traced(receiver, { OTEL_RESOURCE_ATTRIBUTES: 'k8s.pod.name=p1' });
    await sidecar.logged(/Claims are traced/);
    const uid = addClaim(sidecar);
    await bind(sidecar);
    await eventually(() => only(receiver, 'claim ns1/data'));
    await eventually(() => assert.ok(named(receiver, 'create events').length >= 2));
    const whole = only(receiver, 'claim ns1/data');
    assert.equal(whole.traceId, uid.replaceAll('-', ''));
    assert.equal(whole.parentId, '');
    assert.equal(whole.attributes['k8s.persistentvolumeclaim.uid'], uid);
    assert.equal(whole.resource['service.name'], 'csi-provisioner');
    assert.equal(whole.resource['k8s.pod.name'], 'p1');
    assert.match(String(whole.resource['service.instance.id']), /^[0-9a-f-]{36}$/);
    assert.deepEqual([...new Set(receiver.spans.map(({ traceId }) => traceId))], [whole.traceId]);

    for (const { attributes, name } of receiver.spans) {
      const { 'k8s.persistentvolumeclaim.name': claim, 'k8s.namespace.name': namespace } = attributes;
      const { 'k8s.persistentvolume.name': volume, 'csi.driver.name': driver } = attributes;
      const expected = { claim: 'data', namespace: 'ns1', volume: `pvc-${uid}`, driver: 'd.example.com' };
      assert.deepEqual({ claim, namespace, volume, driver }, expected, name);
    }
    const calls = named(receiver, 'csi.v1.Controller/CreateVolume');
    assert.deepEqual(
      calls.map(({ attributes }) => attributes['rpc.response.status_code']),
      ['OK'],
    );
    assert.equal(only(receiver, 'get secrets').attributes['k8s.object.name'], 'creds');
    assert.equal(only(receiver, 'create persistentvolumes').attributes['k8s.object.name'], `pvc-${uid}`);
    assert.equal(only(receiver, 'queue').parentId, whole.spanId);
    const [sync] = named(receiver, 'sync');
    assert.equal(sync?.parentId, whole.spanId);
    assert.equal(sync.failure, undefined);
    assert.equal(sync.attributes['outcome'], 'provisioned');
    const parts = ['get secrets', 'csi.v1.Controller/CreateVolume', 'create persistentvolumes'];
    for (const part of parts) assert.equal(only(receiver, part).parentId, sync.spanId, part);
    const [written] = named(receiver, 'journal write');
    assert.deepEqual([written?.parentId, written?.attributes['phase']], [sync.spanId, 'create']);
    const leases = receiver.spans.filter(({ name }) => name.endsWith(' leases'));
    assert.deepEqual(leases, [], 'one write of the journal is for many claims, and in no trace');
    const syncs = new Set(named(receiver, 'sync').map(({ spanId }) => spanId));
    for (const event of named(receiver, 'create events')) assert.ok(syncs.has(event.parentId));

    const [call] = sidecar.driver.callsOf('CreateVolume');
    const { traceId, spanId } = only(receiver, 'csi.v1.Controller/CreateVolume');
    assert.deepEqual(call?.metadata.get('traceparent'), [`00-${traceId}-${spanId}-01`]);
    assert.deepEqual((call.request as { secrets: object }).secrets, { password: secretValue });
    for (const body of receiver.bodies) {
      assert.ok(!body.includes(secretValue) && !body.includes(Buffer.from(secretValue).toString('base64')));
    }
  });

  test('with each attempt and its failure, in the same trace, and without the secret that a driver quotes', async () => {
    await using receiver = await OtlpReceiver.start();
    await using sidecar = await traced(receiver);
    const text = `pool is full, and ${secretValue} is no help`;
    sidecar.driver.next('CreateVolume', new DriverFailure(status.RESOURCE_EXHAUSTED, text));
    await sidecar.logged(/Started provisioner controller/);
    addClaim(sidecar);
    await bind(sidecar);
    await eventually(() => only(receiver, 'claim ns1/data'));
    const failed = named(receiver, 'sync').filter(({ failure }) => failure !== undefined);
    assert.equal(failed.length, 1);
    assert.match(failed[0]?.failure ?? '', /pool is full, and \*\*\*stripped\*\*\* is no help/);
    assert.ok(!sidecar.process.log().includes(secretValue));
    for (const body of receiver.bodies) assert.ok(!body.includes(secretValue));
    assert.deepEqual(
      named(receiver, 'csi.v1.Controller/CreateVolume').map(({ failure }) => failure),
      ['ResourceExhausted', undefined],
    );
  });

  test('once something is done for it: one that only waits, or is the work of another instance, has no trace', async () => {
    await using receiver = await OtlpReceiver.start();
    await using sidecar = await traced(receiver, {}, ['-v=5']);
    await sidecar.logged(/Started provisioner controller/);
    addClaim(sidecar, 'waits', 'late');
    await sidecar.logged(/Not provisioning the claim now/);
    addClaim(sidecar);
    await bind(sidecar);
    await eventually(() => only(receiver, 'claim ns1/data'));
    sidecar.cluster.server.client('test').delete(core('persistentvolumeclaims'), { namespace: 'ns1', name: 'waits' });
    await sidecar.process.stop('SIGTERM');
    const { traceId } = only(receiver, 'claim ns1/data');
    assert.deepEqual([...new Set(receiver.spans.map((span) => span.traceId))], [traceId]);
  });

  test('until the process is told to stop: what is open is sent before it ends', async () => {
    await using receiver = await OtlpReceiver.start();
    await using sidecar = await traced(receiver, { OTEL_BSP_SCHEDULE_DELAY: '600000' });
    await sidecar.logged(/Started provisioner controller/);
    addClaim(sidecar);
    await sidecar.driver.called('CreateVolume');
    await sidecar.process.stop('SIGTERM');
    assert.equal(await sidecar.process.ending(), 'exit code 0');
    only(receiver, 'claim ns1/data');
    assert.ok(named(receiver, 'csi.v1.Controller/CreateVolume').length > 0);
  });
});

/** What the control plane does once the claim is gone. @returns the volume as it was. */
function release({ cluster }: SidecarProcess): SandboxObject {
  const api = cluster.server.client('test');
  const [volume] = api.list(core('persistentvolumes'));
  assert.ok(volume !== undefined);
  api.updateStatus(core('persistentvolumes'), { ...structuredClone(volume), status: { phase: 'Released' } });
  return volume;
}

describe('the deletion of a volume is traced', () => {
  test('from the queue over secret and driver until the object is gone, in a trace that the UID of the volume names', async () => {
    await using receiver = await OtlpReceiver.start();
    await using sidecar = await traced(receiver);
    sidecar.driver.next('DeleteVolume', new DriverFailure(status.FAILED_PRECONDITION, `in use, token ${secretValue}`));
    await sidecar.logged(/Started provisioner controller/);
    const claimUid = addClaim(sidecar);
    await bind(sidecar);
    const { metadata } = release(sidecar);
    const whole = await eventually(() => only(receiver, `delete volume ${metadata.name}`));
    assert.equal(whole.traceId, metadata.uid?.replaceAll('-', ''));
    assert.equal(whole.parentId, '');
    assert.equal(whole.attributes['k8s.persistentvolume.name'], metadata.name);
    assert.equal(whole.attributes['k8s.persistentvolumeclaim.uid'], claimUid);

    const own = receiver.spans.filter(({ traceId }) => traceId === whole.traceId);
    const children = (name: string): ReceivedSpan[] => own.filter((span) => span.name === name);
    assert.deepEqual(
      children('queue').map(({ parentId }) => parentId),
      [whole.spanId],
    );
    const [failed, done, ...others] = children('sync');
    assert.match(failed?.failure ?? '', /FailedPrecondition desc = in use, token \*\*\*stripped\*\*\*$/);
    assert.equal(done?.failure, undefined);
    assert.deepEqual(others, []);
    for (const part of ['get secrets', 'csi.v1.Controller/DeleteVolume']) {
      assert.deepEqual(
        children(part).map(({ parentId }) => parentId),
        [failed?.spanId, done?.spanId],
        part,
      );
    }
    assert.deepEqual(
      children('delete persistentvolumes').map(({ parentId }) => parentId),
      [done?.spanId],
    );
    const [, call] = sidecar.driver.callsOf('DeleteVolume');
    const [, span] = children('csi.v1.Controller/DeleteVolume');
    assert.deepEqual(call?.metadata.get('traceparent'), [`00-${whole.traceId}-${span?.spanId ?? ''}-01`]);
    for (const body of receiver.bodies) assert.ok(!body.includes(secretValue));
  });
});

describe('a claim that keeps failing', () => {
  test('has a root for each ten minutes, which follows the one before', async (t) => {
    await using receiver = await OtlpReceiver.start();
    const { env } = process;
    env['OTEL_EXPORTER_OTLP_ENDPOINT'] = receiver.url;
    t.after(() => Reflect.deleteProperty(env, 'OTEL_EXPORTER_OTLP_ENDPOINT'));
    const otlp = startOtlpTraces({ config: { ratio: 1 }, version: 'v0', logger: recordedLogger([]) });
    const clock = new ManualClock({ turns: 1 });
    const traces = new ClaimTraces({
      tracer: otlp.tracer,
      provisionerName: 'd.example.com',
      volumeName: () => 'pvc-1',
      clock,
    });
    const uid = '01234567-89ab-4def-8123-456789abcdef';
    traces.seen({ metadata: { namespace: 'ns1', name: 'stuck', uid }, spec: {} });
    for (let attempt = 1; attempt <= 5; attempt++) {
      await assert.rejects(traces.attempt(uid, () => Promise.reject(new Error('on fire'))));
      await clock.advance(5 * 60_000);
    }
    await otlp[Symbol.asyncDispose]();
    const [first, second, ...others] = named(receiver, 'claim ns1/stuck');
    assert.deepEqual(others, [], 'the last one is still open');
    assert.equal(first?.failure, 'on fire');
    assert.ok(second !== undefined);
    assert.equal(Number(second.attributes['attempts']), 5);
    assert.deepEqual(second.links, [first.spanId]);
    assert.deepEqual([...new Set(receiver.spans.map(({ traceId }) => traceId))], [uid.replaceAll('-', '')]);
    const syncs = named(receiver, 'sync');
    assert.equal(syncs.length, 5);
    assert.equal(syncs[3]?.parentId, second.spanId);
    assert.deepEqual([...new Set(syncs.map(({ attributes }) => attributes['outcome']))], ['failed']);
  });
});

describe('nothing depends on the receiver of traces', () => {
  for (const mode of ['fail', 'hang'] as const) {
    test(`claims get their volumes while it does ${mode}, one line says so, and the process ends in time`, async () => {
      await using receiver = await OtlpReceiver.start();
      receiver.mode = mode;
      await using sidecar = await traced(receiver, { OTEL_EXPORTER_OTLP_TIMEOUT: '200' });
      await sidecar.logged(/Started provisioner controller/);
      addClaim(sidecar);
      await bind(sidecar);
      await eventually(() => assert.ok(receiver.requests >= 1));
      await sidecar.process.stop('SIGTERM');
      assert.equal(await sidecar.process.ending(), 'exit code 0');
      const warnings = sidecar.process.log().match(/Traces could not be exported and are lost/g) ?? [];
      assert.ok(warnings.length <= 1, `${warnings.length} lines`);
    });
  }

  test('what waits for one that hangs is bounded, however much is traced, and is sent once it answers', async (t) => {
    await using receiver = await OtlpReceiver.start();
    receiver.mode = 'hang';
    const { env } = process;
    const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_EXPORTER_OTLP_TIMEOUT: '200' };
    Object.assign(env, variables);
    t.after(() => Object.keys(variables).forEach((name) => Reflect.deleteProperty(env, name)));
    const lines: LogLine[] = [];
    const logger = recordedLogger(lines);
    const traces = startOtlpTraces({ config: { ratio: 1 }, version: 'v0', logger, flushMs: 60_000 });
    const begin = (name: string): void => {
      traces.tracer.begin(name, { id: '', startMs: Date.now(), attributes: {} }).end();
    };
    for (let number = 0; number < 20_000; number++) begin('early');
    await eventually(() => assert.ok(receiver.requests >= 2, 'the first request is given up in time'));
    receiver.mode = 'receive';
    await traces[Symbol.asyncDispose]();
    assert.ok(receiver.spans.length > 0 && receiver.spans.length <= 4096, `${receiver.spans.length} spans`);
    assert.deepEqual(
      lines.map(({ message }) => message),
      ['Traces could not be exported and are lost'],
    );
  });

  test('one that is not there costs one line, too', async () => {
    const receiver = await OtlpReceiver.start();
    await using sidecar = await traced(receiver);
    await sidecar.logged(/Started provisioner controller/);
    await receiver[Symbol.asyncDispose]();
    addClaim(sidecar);
    await bind(sidecar);
    await sidecar.logged(/Traces could not be exported and are lost/);
  });
});

describe('nothing is traced', () => {
  const rows: [string, Record<string, string>][] = [
    ['with OTEL_SDK_DISABLED=true', { OTEL_SDK_DISABLED: 'true' }],
    ['with OTEL_TRACES_EXPORTER=none', { OTEL_TRACES_EXPORTER: 'none' }],
    ['with OTEL_TRACES_SAMPLER=always_off', { OTEL_TRACES_SAMPLER: 'always_off' }],
    ['over a protocol that is not there', { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
  ];
  for (const [title, environment] of rows) {
    test(title, async () => {
      await using receiver = await OtlpReceiver.start();
      await using sidecar = await traced(receiver, environment);
      await sidecar.logged(/Started provisioner controller/);
      addClaim(sidecar);
      await bind(sidecar);
      const [call] = sidecar.driver.callsOf('CreateVolume');
      assert.deepEqual(call?.metadata.get('traceparent'), []);
      assert.equal(receiver.requests, 0);
      assert.equal(sidecar.process.log().includes('Nothing is traced'), 'OTEL_EXPORTER_OTLP_PROTOCOL' in environment);
    });
  }
});
