import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { credentials, makeClientConstructor, status } from '@grpc/grpc-js';
import { loadCsi } from '../../../src/csi/csi-proto.ts';
import type { ControllerClient } from '../../../src/csi/generated/csi/v1/Controller.ts';
import type { CreateVolumeRequest } from '../../../src/csi/generated/csi/v1/CreateVolumeRequest.ts';
import type { IdentityClient } from '../../../src/csi/generated/csi/v1/Identity.ts';
import type { NodeClient } from '../../../src/csi/generated/csi/v1/Node.ts';
import { eventually } from '../../support/eventually.ts';
import { grpcService } from '../../support/grpc-service.ts';
import { call, HostpathHere, HostpathProcess } from './hostpath-process.ts';
import type { HostpathOptions } from './hostpath-process.ts';

const { v1 } = loadCsi();
const mountCapability = { mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } } as const;
const blockCapability = { block: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } } as const;
const gib = 2 ** 30;

/** A driver in this process and its clients, closed when the test ends. */
async function startDriver(t: TestContext, flags: readonly string[] = []) {
  return withClients(t, await HostpathHere.start({ flags }));
}

/** The same as a process of its own. */
async function startProcess(t: TestContext, options: HostpathOptions = {}) {
  return withClients(t, await HostpathProcess.start(options));
}

function withClients<Driver extends HostpathHere | HostpathProcess>(t: TestContext, driver: Driver) {
  const clients = clientsOf(driver);
  t.after(async () => {
    clients.close();
    await driver[Symbol.asyncDispose]();
  });
  return { driver, ...clients };
}

function clientsOf(driver: { readonly socketPath: string }) {
  const address = `unix:${driver.socketPath}`;
  const client = (name: keyof typeof v1): unknown => {
    const Client = makeClientConstructor(grpcService(v1[name]), name);
    return new Client(address, credentials.createInsecure());
  };
  const identity = client('Identity') as IdentityClient;
  const controller = client('Controller') as ControllerClient;
  const node = client('Node') as NodeClient;
  const close = (): void => {
    for (const client of [identity, controller, node]) client.close();
  };
  return { identity, controller, node, close };
}

type Clients = ReturnType<typeof clientsOf>;

async function createVolume({ controller }: Pick<Clients, 'controller'>, request: CreateVolumeRequest) {
  const { volume } = await call(controller, 'CreateVolume', { volume_capabilities: [mountCapability], ...request });
  assert.ok(volume?.volume_id);
  return { ...volume, volume_id: volume.volume_id };
}

const failsWith = (code: status, details = /./) => ({ code, details });

describe('the hostpath driver as a process', () => {
  test('says where it listens, and goes with its socket on SIGTERM', async (t) => {
    const { driver, identity } = await startProcess(t, { flags: ['--driver-name', 'my.driver.example'] });
    assert.deepEqual(driver.ready, {
      address: `unix://${driver.socketPath}`,
      driver: 'my.driver.example',
      pid: driver.process.pid,
    });
    assert.equal((await call(identity, 'GetPluginInfo', {})).name, 'my.driver.example');
    assert.deepEqual((await call(identity, 'Probe', {})).ready, { value: true });
    assert.deepEqual(await driver.end('SIGTERM'), { code: 0, signal: null });
    assert.equal(existsSync(driver.socketPath), false);
    assert.equal(await driver.errors, '');
  });

  test('exits 2 with one line for a flag it does not know', async () => {
    await using driver = await HostpathProcess.spawn({ flags: ['--no-such-flag'] });
    const errors = await driver.errors;
    assert.match(errors, /^hostpath driver: Unknown option '--no-such-flag'\n$/);
    assert.equal((await driver.end()).code, 2);
  });

  test('refuses a socket on which another process listens', async (t) => {
    const { driver } = await startProcess(t);
    const second = await HostpathProcess.spawn({ home: driver.home });
    assert.match(await second.errors, /another process listens on .*csi\.sock\n$/);
    assert.equal((await second.end()).code, 1);
  });

  test('refuses a path that is no socket', async (t) => {
    const home = await mkdtemp(path.join(tmpdir(), 'hostpath-'));
    t.after(() => rm(home, { recursive: true }));
    await writeFile(path.join(home, 'csi.sock'), 'precious');
    const driver = await HostpathProcess.spawn({ home });
    assert.match(await driver.errors, /is not a socket\n$/);
    assert.equal((await driver.end()).code, 1);
    assert.equal(await readFile(path.join(home, 'csi.sock'), 'utf8'), 'precious');
  });

  test('keeps volumes and snapshots over a SIGKILL, replaces the stale socket and drops unfinished work', async (t) => {
    const first = await startProcess(t);
    const volume = await createVolume(first, { name: 'kept', capacity_range: { required_bytes: 5 * gib } });
    const { snapshot } = await call(first.controller, 'CreateSnapshot', {
      name: 'also-kept',
      source_volume_id: volume.volume_id,
    });
    const unfinished = path.join(first.driver.stateDir, 'volumes', '.new-torn');
    await mkdir(unfinished);
    assert.deepEqual(await first.driver.end('SIGKILL'), { code: null, signal: 'SIGKILL' });
    assert.ok(existsSync(first.driver.socketPath));

    const second = await startProcess(t, { home: first.driver.home });
    const { entries } = await call(second.controller, 'ListVolumes', {});
    assert.deepEqual(
      entries?.map((entry) => entry.volume),
      [volume],
    );
    const listed = await call(second.controller, 'ListSnapshots', {});
    assert.deepEqual(
      listed.entries?.map((entry) => entry.snapshot),
      [snapshot],
    );
    assert.equal(existsSync(unfinished), false);
    const again = await createVolume(second, { name: 'kept', capacity_range: { required_bytes: 5 * gib } });
    assert.equal(again.volume_id, volume.volume_id);
  });

  test('exits on SIGTERM although a call hangs, which ends', async (t) => {
    const { driver, controller } = await startProcess(t);
    await driver.setFaults([{ method: 'ListVolumes', hang: true, times: 1 }]);
    const hanging = call(controller, 'ListVolumes', {});
    hanging.catch(() => undefined);
    await until(async () => (await driver.faults())[0]?.times === 0);
    assert.equal((await driver.end()).code, 0);
    await assert.rejects(hanging, failsWith(status.CANCELLED));
  });
});

test('begins ids with the name of the request where that is asked for, and the name can be part of an id', async (t) => {
  const { controller } = await startDriver(t, ['--named-ids']);
  assert.match((await createVolume({ controller }, { name: 'pvc-1' })).volume_id, /^pvc-1#[\da-f-]{36}$/);
  const repeated = await createVolume({ controller }, { name: 'pvc-1' });
  assert.equal((await createVolume({ controller }, { name: 'pvc-1' })).volume_id, repeated.volume_id);
  for (const name of ['../x', 'x'.repeat(120)])
    assert.match((await createVolume({ controller }, { name })).volume_id, /^[\da-f-]{36}$/);
});

describe('CreateVolume', () => {
  let driver: HostpathHere;
  let clients: Clients;
  before(async () => {
    driver = await HostpathHere.start({ flags: ['--capacity', '100Gi'] });
    clients = clientsOf(driver);
  });
  after(async () => {
    clients.close();
    await driver[Symbol.asyncDispose]();
  });

  const refused: { name: string; request: CreateVolumeRequest; want: ReturnType<typeof failsWith> }[] = [
    { name: 'no name', request: { name: '' }, want: failsWith(status.INVALID_ARGUMENT, /name is required/) },
    {
      name: 'a name of 129 bytes',
      request: { name: 'x'.repeat(129) },
      want: failsWith(status.INVALID_ARGUMENT, /longer than 128 bytes/),
    },
    {
      name: 'a name of 65 two-byte letters',
      request: { name: 'ä'.repeat(65) },
      want: failsWith(status.INVALID_ARGUMENT, /longer than 128 bytes/),
    },
    {
      name: 'a control character in the name',
      request: { name: 'a\nb' },
      want: failsWith(status.INVALID_ARGUMENT, /control characters/),
    },
    {
      name: 'no capabilities',
      request: { volume_capabilities: [] },
      want: failsWith(status.INVALID_ARGUMENT, /volume_capabilities is required/),
    },
    {
      name: 'a capability without access type',
      request: { volume_capabilities: [{ access_mode: mountCapability.access_mode }] },
      want: failsWith(status.INVALID_ARGUMENT, /access_type is required/),
    },
    {
      name: 'a capability without access mode',
      request: { volume_capabilities: [{ mount: {} }] },
      want: failsWith(status.INVALID_ARGUMENT, /access_mode is required/),
    },
    {
      name: 'block and mount at once',
      request: { volume_capabilities: [mountCapability, blockCapability] },
      want: failsWith(status.INVALID_ARGUMENT, /not both/),
    },
    {
      name: 'a negative size',
      request: { capacity_range: { required_bytes: -1 } },
      want: failsWith(status.INVALID_ARGUMENT, /negative/),
    },
    {
      name: 'a limit below the required size',
      request: { capacity_range: { required_bytes: 2, limit_bytes: 1 } },
      want: failsWith(status.OUT_OF_RANGE, /limit_bytes 1 is below required_bytes 2/),
    },
    {
      name: 'more than any volume can have',
      request: { capacity_range: { required_bytes: 101 * gib } },
      want: failsWith(status.OUT_OF_RANGE),
    },
    {
      name: 'an unknown snapshot',
      request: { volume_content_source: { snapshot: { snapshot_id: 'none' } } },
      want: failsWith(status.NOT_FOUND, /snapshot none does not exist/),
    },
    {
      name: 'an unknown source volume',
      request: { volume_content_source: { volume: { volume_id: 'none' } } },
      want: failsWith(status.NOT_FOUND, /volume none does not exist/),
    },
    {
      name: 'a content source of no kind',
      request: { volume_content_source: {} },
      want: failsWith(status.INVALID_ARGUMENT, /type is required/),
    },
    {
      name: 'an unknown mutable parameter',
      request: { mutable_parameters: { colour: 'red' } },
      want: failsWith(status.INVALID_ARGUMENT, /colour is not supported/),
    },
    {
      name: 'a reserved key that the sidecar should have kept',
      request: { parameters: { 'csi.storage.k8s.io/fstype': 'xfs' } },
      want: failsWith(status.INVALID_ARGUMENT, /fstype is not known/),
    },
    {
      name: 'a missing secret',
      request: { parameters: { requireSecret: 'password' }, secrets: { user: 'joe' } },
      want: failsWith(status.INVALID_ARGUMENT, /secrets must have the key password/),
    },
  ];
  for (const { name, request, want } of refused) {
    test(`refuses ${name}, and makes nothing`, async () => {
      await assert.rejects(createVolume(clients, { name: 'refused', ...request }), want);
      const { entries = [] } = await call(clients.controller, 'ListVolumes', {});
      assert.deepEqual(
        (await readdir(path.join(driver.stateDir, 'volumes'))).length,
        entries.length,
        'no leftovers on disk',
      );
    });
  }

  test('answers a repeat with the same volume', async () => {
    const request = {
      name: 'twice',
      capacity_range: { required_bytes: gib, limit_bytes: 2 * gib },
      parameters: { a: 'b' },
    };
    const volume = await createVolume(clients, request);
    assert.equal(volume.capacity_bytes, String(gib));
    assert.deepEqual(volume.volume_context, { a: 'b' });
    assert.deepEqual(await createVolume(clients, request), volume);
    assert.deepEqual(await createVolume(clients, { ...request, capacity_range: { limit_bytes: gib } }), volume);
  });

  const incompatible: { name: string; change: CreateVolumeRequest; details: RegExp }[] = [
    { name: 'more room', change: { capacity_range: { required_bytes: 2 * gib } }, details: /different capacity$/ },
    { name: 'less room', change: { capacity_range: { limit_bytes: gib - 1 } }, details: /different capacity$/ },
    { name: 'a block device', change: { volume_capabilities: [blockCapability] }, details: /different access type$/ },
    { name: 'other parameters', change: { parameters: { a: 'b' } }, details: /different parameters$/ },
    {
      name: 'a source',
      change: { volume_content_source: { volume: { volume_id: 'some' } } },
      details: /different content source$/,
    },
  ];
  for (const { name, change, details } of incompatible) {
    test(`refuses the same name with ${name}`, async () => {
      const request = { name: 'taken', capacity_range: { required_bytes: gib } };
      await createVolume(clients, request);
      await assert.rejects(createVolume(clients, { ...request, ...change }), failsWith(status.ALREADY_EXISTS, details));
    });
  }

  test('takes 1 GiB where no size is asked for, or the limit if that is less', async () => {
    assert.equal((await createVolume(clients, { name: 'any-size' })).capacity_bytes, String(gib));
    const small = await createVolume(clients, { name: 'small', capacity_range: { limit_bytes: 1000 } });
    assert.equal(small.capacity_bytes, '1000');
  });

  test('makes a sparse file for a block volume', async () => {
    const volume = await createVolume(clients, {
      name: 'block',
      volume_capabilities: [blockCapability],
      capacity_range: { required_bytes: 3 * gib },
    });
    const content = statSync(path.join(driver.stateDir, 'volumes', volume.volume_id, 'data'));
    assert.equal(content.size, 3 * gib);
    assert.equal(content.blocks, 0);
  });

  test('is ABORTED while the same name is in work', async () => {
    const source = await createVolume(clients, { name: 'copied' });
    const content = path.join(driver.stateDir, 'volumes', source.volume_id, 'data');
    await writeFile(path.join(content, 'file'), 'x');
    const request = { name: 'in-work', volume_content_source: { volume: { volume_id: source.volume_id } } };
    const results = await Promise.allSettled([createVolume(clients, request), createVolume(clients, request)]);
    assert.deepEqual(results.map((result) => result.status).sort(), ['fulfilled', 'rejected']);
    const failed = results.find((result) => result.status === 'rejected');
    assert.equal((failed?.reason as { code: number }).code, status.ABORTED);
  });
});

describe('content', () => {
  test('a clone and a restored snapshot have the files of their source, at its size', async (t) => {
    const { driver, ...clients } = await startDriver(t);
    const { controller } = clients;
    const source = await createVolume(clients, { name: 'source', capacity_range: { required_bytes: 2 * gib } });
    const contentOf = (folder: string, id: string): string => path.join(driver.stateDir, folder, id, 'data');
    await writeFile(path.join(contentOf('volumes', source.volume_id), 'greeting'), 'before', { mode: 0o640 });
    const { snapshot } = await call(controller, 'CreateSnapshot', { name: 's', source_volume_id: source.volume_id });
    assert.ok(snapshot?.snapshot_id);
    assert.equal(snapshot.size_bytes, String(2 * gib));
    assert.equal(snapshot.ready_to_use, true);
    const age = Date.now() / 1000 - Number(snapshot.creation_time?.seconds);
    assert.ok(age >= -1 && age < 60, `created ${age} s ago`);
    await writeFile(path.join(contentOf('volumes', source.volume_id), 'greeting'), 'after');

    const fromSnapshot = { snapshot: { snapshot_id: snapshot.snapshot_id } };
    const restored = await createVolume(clients, {
      name: 'restored',
      capacity_range: { required_bytes: gib },
      volume_content_source: fromSnapshot,
    });
    const fromVolume = { volume: { volume_id: source.volume_id } };
    const clone = await createVolume(clients, { name: 'clone', volume_content_source: fromVolume });
    const read = (id: string): Promise<string> => readFile(path.join(contentOf('volumes', id), 'greeting'), 'utf8');
    assert.equal(await read(restored.volume_id), 'before');
    assert.equal(await read(clone.volume_id), 'after');
    assert.equal(statSync(path.join(contentOf('volumes', restored.volume_id), 'greeting')).mode & 0o777, 0o640);
    assert.equal(restored.capacity_bytes, String(2 * gib));
    assert.deepEqual(restored.content_source?.snapshot, fromSnapshot.snapshot);
    assert.deepEqual(clone.content_source?.volume, fromVolume.volume);
    await assert.rejects(
      createVolume(clients, {
        name: 'cramped',
        capacity_range: { limit_bytes: gib },
        volume_content_source: fromSnapshot,
      }),
      failsWith(status.OUT_OF_RANGE, /the source has 2147483648 bytes/),
    );
    await assert.rejects(
      createVolume(clients, {
        name: 'other-kind',
        volume_capabilities: [blockCapability],
        volume_content_source: fromVolume,
      }),
      failsWith(status.INVALID_ARGUMENT, /mount volume/),
    );
  });

  test('deleting a volume removes its files and its name; a repeat and an unknown id are fine', async (t) => {
    const { driver, ...clients } = await startDriver(t);
    const volume = await createVolume(clients, { name: 'short-lived' });
    await call(clients.controller, 'DeleteVolume', { volume_id: volume.volume_id });
    assert.deepEqual(await readdir(path.join(driver.stateDir, 'volumes')), []);
    await call(clients.controller, 'DeleteVolume', { volume_id: volume.volume_id });
    await call(clients.controller, 'DeleteVolume', { volume_id: '../../etc' });
    await assert.rejects(call(clients.controller, 'DeleteVolume', {}), failsWith(status.INVALID_ARGUMENT));
    const next = await createVolume(clients, { name: 'short-lived' });
    assert.notEqual(next.volume_id, volume.volume_id);
  });

  test('a volume made with requireSecretOnDelete goes only with the secret', async (t) => {
    const { driver: _, ...clients } = await startDriver(t);
    const volume = await createVolume(clients, { name: 'guarded', parameters: { requireSecretOnDelete: 'key' } });
    const request = { volume_id: volume.volume_id };
    await assert.rejects(call(clients.controller, 'DeleteVolume', request), failsWith(status.INVALID_ARGUMENT, /key/));
    await call(clients.controller, 'DeleteVolume', { ...request, secrets: { key: 'value' } });
    assert.equal((await call(clients.controller, 'ListVolumes', {})).entries, undefined);
  });
});

describe('snapshots', () => {
  test('are made once per name, listed by page and by source, and deleted', async (t) => {
    const { driver: _, ...clients } = await startDriver(t);
    const { controller } = clients;
    const [one, two] = [await createVolume(clients, { name: 'one' }), await createVolume(clients, { name: 'two' })];
    const make = async (name: string, source_volume_id: string): Promise<string> => {
      const { snapshot } = await call(controller, 'CreateSnapshot', { name, source_volume_id });
      return snapshot?.snapshot_id ?? '';
    };
    const ids = [await make('a', one.volume_id), await make('b', two.volume_id), await make('c', one.volume_id)];
    assert.equal(await make('a', one.volume_id), ids[0]);
    await assert.rejects(make('a', two.volume_id), failsWith(status.ALREADY_EXISTS));
    await assert.rejects(make('d', 'none'), failsWith(status.NOT_FOUND));
    await assert.rejects(make('', one.volume_id), failsWith(status.INVALID_ARGUMENT));
    await assert.rejects(make('d', ''), failsWith(status.INVALID_ARGUMENT));

    const list = async (request: object): Promise<(string | undefined)[]> =>
      (await call(controller, 'ListSnapshots', request)).entries?.map((entry) => entry.snapshot?.snapshot_id) ?? [];
    assert.deepEqual(await list({}), ids);
    assert.deepEqual(await list({ source_volume_id: one.volume_id }), [ids[0], ids[2]]);
    assert.deepEqual(await list({ snapshot_id: ids[1] }), [ids[1]]);
    assert.deepEqual(await list({ snapshot_id: 'none' }), []);
    const found = await call(controller, 'GetSnapshot', { snapshot_id: ids[1] ?? '' });
    assert.equal(found.snapshot?.source_volume_id, two.volume_id);

    await call(controller, 'DeleteSnapshot', { snapshot_id: ids[0] ?? '' });
    await call(controller, 'DeleteSnapshot', { snapshot_id: ids[0] ?? '' });
    assert.deepEqual(await list({}), ids.slice(1));
    await assert.rejects(call(controller, 'GetSnapshot', { snapshot_id: ids[0] ?? '' }), failsWith(status.NOT_FOUND));
  });
});

describe('ListVolumes', () => {
  test('pages through volumes that come and go without repeating one', async (t) => {
    const { driver: _, ...clients } = await startDriver(t);
    const { controller } = clients;
    const ids: string[] = [];
    for (const name of ['a', 'b', 'c', 'd', 'e']) ids.push((await createVolume(clients, { name })).volume_id);
    const first = await call(controller, 'ListVolumes', { max_entries: 2 });
    assert.deepEqual(
      first.entries?.map((entry) => entry.volume?.volume_id),
      ids.slice(0, 2),
    );
    assert.ok(first.next_token);
    await call(controller, 'DeleteVolume', { volume_id: ids[1] ?? '' });
    ids.push((await createVolume(clients, { name: 'f' })).volume_id);
    const rest = await call(controller, 'ListVolumes', { starting_token: first.next_token });
    assert.deepEqual(
      rest.entries?.map((entry) => entry.volume?.volume_id),
      ids.slice(2),
    );
    assert.equal(rest.next_token, undefined);
    await assert.rejects(call(controller, 'ListVolumes', { starting_token: 'made-up' }), failsWith(status.ABORTED));
  });
});

describe('capacity and topology', () => {
  test('each segment has its own room, which volumes use up and give back', async (t) => {
    const flags = ['--capacity', '10Gi', '--topology', 'zone=a', '--topology', 'zone=b'];
    const { driver: _, ...clients } = await startDriver(t, flags);
    const { controller } = clients;
    const room = async (segments?: Record<string, string>): Promise<number[]> => {
      const request = segments === undefined ? {} : { accessible_topology: { segments } };
      const { available_capacity, maximum_volume_size } = await call(controller, 'GetCapacity', request);
      return [Number(available_capacity) / gib, Number(maximum_volume_size?.value) / gib];
    };
    assert.deepEqual(await room(), [20, 10]);
    const inB = { requisite: [{ segments: { zone: 'b' } }] };
    const volume = await createVolume(clients, {
      name: 'in-b',
      capacity_range: { required_bytes: 6 * gib },
      accessibility_requirements: inB,
    });
    assert.deepEqual(volume.accessible_topology, [{ segments: { zone: 'b' } }]);
    assert.deepEqual(await room({ zone: 'a' }), [10, 10]);
    assert.deepEqual(await room({ zone: 'b' }), [4, 4]);
    assert.deepEqual(await room({ zone: 'c' }), [0, 0]);

    const five = { capacity_range: { required_bytes: 5 * gib } };
    const full = failsWith(status.RESOURCE_EXHAUSTED, /at most 4294967296 are free/);
    await assert.rejects(createVolume(clients, { name: 'no-room', ...five, accessibility_requirements: inB }), full);
    const either = { preferred: [{ segments: { zone: 'b' } }, { segments: { zone: 'a' } }] };
    const moved = await createVolume(clients, { name: 'moved', ...five, accessibility_requirements: either });
    assert.deepEqual(moved.accessible_topology, [{ segments: { zone: 'a' } }]);

    const elsewhere = { requisite: [{ segments: { zone: 'c' } }] };
    const exhausted = failsWith(status.RESOURCE_EXHAUSTED, /requested segments: \{"zone":"c"\}/);
    await assert.rejects(createVolume(clients, { name: 'c', accessibility_requirements: elsewhere }), exhausted);
    const again = { name: 'in-b', capacity_range: { required_bytes: 6 * gib } };
    const misplaced = { ...again, accessibility_requirements: { requisite: [{ segments: { zone: 'a' } }] } };
    await assert.rejects(createVolume(clients, misplaced), failsWith(status.ALREADY_EXISTS, /different topology/));

    await call(controller, 'DeleteVolume', { volume_id: volume.volume_id });
    assert.deepEqual(await room({ zone: 'b' }), [10, 10]);
    const { accessible_topology } = await call(clients.node, 'NodeGetInfo', {});
    assert.deepEqual(accessible_topology, { segments: { zone: 'a' } });
  });

  test('a driver without topology says nothing of it', async (t) => {
    const { driver: _, ...clients } = await startDriver(t);
    const { capabilities = [] } = await call(clients.identity, 'GetPluginCapabilities', {});
    assert.deepEqual(
      capabilities.map((capability) => capability.service?.type ?? capability.volume_expansion?.type),
      ['CONTROLLER_SERVICE', 'ONLINE'],
    );
    assert.equal((await createVolume(clients, { name: 'anywhere' })).accessible_topology, undefined);
    assert.equal((await call(clients.node, 'NodeGetInfo', {})).accessible_topology, undefined);
  });
});

describe('expanding and modifying', () => {
  test('a volume grows once and never shrinks', async (t) => {
    const { driver: _, ...clients } = await startDriver(t, ['--capacity', '10Gi']);
    const { controller } = clients;
    const { volume_id } = await createVolume(clients, { name: 'growing' });
    const grow = async (required_bytes: number, limit_bytes = 0) =>
      call(controller, 'ControllerExpandVolume', { volume_id, capacity_range: { required_bytes, limit_bytes } });
    const grown = { capacity_bytes: String(2 * gib), node_expansion_required: false };
    assert.deepEqual(await grow(2 * gib), grown);
    assert.deepEqual(await grow(gib), grown);
    await assert.rejects(grow(gib, gib), failsWith(status.OUT_OF_RANGE, /more than limit_bytes/));
    await assert.rejects(grow(11 * gib), failsWith(status.OUT_OF_RANGE, /no room/));
    const { volume } = await call(controller, 'ControllerGetVolume', { volume_id });
    assert.equal(volume?.capacity_bytes, String(2 * gib));
    const unknown = { volume_id: 'none', capacity_range: { required_bytes: 1 } };
    await assert.rejects(call(controller, 'ControllerExpandVolume', unknown), failsWith(status.NOT_FOUND));
    await assert.rejects(
      call(controller, 'ControllerExpandVolume', { volume_id }),
      failsWith(status.INVALID_ARGUMENT, /capacity_range is required/),
    );
  });

  test('mutable parameters change one by one', async (t) => {
    const { driver, ...clients } = await startDriver(t, ['--mutable-parameters', 'iops,colour']);
    const { volume_id } = await createVolume(clients, { name: 'tuned', mutable_parameters: { iops: '100' } });
    const modify = async (mutable_parameters: Record<string, string>) =>
      call(clients.controller, 'ControllerModifyVolume', { volume_id, mutable_parameters });
    await modify({ colour: 'red' });
    await assert.rejects(modify({ tier: 'gold' }), failsWith(status.INVALID_ARGUMENT, /tier is not supported/));
    const record = await readFile(path.join(driver.stateDir, 'volumes', volume_id, 'record.json'), 'utf8');
    const { mutableParameters } = JSON.parse(record) as { mutableParameters: object };
    assert.deepEqual(mutableParameters, { iops: '100', colour: 'red' });
  });

  test('ValidateVolumeCapabilities confirms what holds and explains what does not', async (t) => {
    const { driver: _, ...clients } = await startDriver(t);
    const { volume_id } = await createVolume(clients, { name: 'checked' });
    const validate = async (request: object) =>
      call(clients.controller, 'ValidateVolumeCapabilities', { volume_id, ...request });
    const good = await validate({ volume_capabilities: [mountCapability] });
    assert.equal(good.confirmed?.volume_capabilities?.[0]?.access_mode?.mode, 'SINGLE_NODE_WRITER');
    const bad = await validate({ volume_capabilities: [blockCapability] });
    assert.equal(bad.confirmed, undefined);
    assert.match(bad.message ?? '', /is a mount volume/);
    await assert.rejects(validate({}), failsWith(status.INVALID_ARGUMENT));
  });
});

describe('attachment', () => {
  test('is served only with --attach', async (t) => {
    const { driver: _, controller } = await startDriver(t);
    const { capabilities = [] } = await call(controller, 'ControllerGetCapabilities', {});
    assert.ok(capabilities.length > 0);
    assert.ok(capabilities.every((capability) => capability.rpc?.type !== 'PUBLISH_UNPUBLISH_VOLUME'));
    const request = { volume_id: 'v', node_id: 'n', volume_capability: mountCapability };
    await assert.rejects(call(controller, 'ControllerPublishVolume', request), failsWith(status.UNIMPLEMENTED));
  });

  test('holds a single-node volume on one known node and keeps it from being deleted', async (t) => {
    const flags = ['--attach', '--node-id', 'n1', '--node-id', 'n2'];
    const { driver: _, ...clients } = await startDriver(t, flags);
    const { controller } = clients;
    const { volume_id } = await createVolume(clients, { name: 'attached' });
    const attach = async (node_id: string, readonly = false) =>
      call(controller, 'ControllerPublishVolume', { volume_id, node_id, readonly, volume_capability: mountCapability });
    await attach('n1');
    await attach('n1');
    await assert.rejects(attach('n1', true), failsWith(status.ALREADY_EXISTS));
    await assert.rejects(attach('n2'), failsWith(status.FAILED_PRECONDITION, /attached to node n1/));
    await assert.rejects(attach('n3'), failsWith(status.NOT_FOUND, /node n3/));
    const { status: where } = await call(controller, 'ControllerGetVolume', { volume_id });
    assert.deepEqual(where?.published_node_ids, ['n1']);
    const inUse = failsWith(status.FAILED_PRECONDITION, /attached to node n1/);
    await assert.rejects(call(controller, 'DeleteVolume', { volume_id }), inUse);
    await call(controller, 'ControllerUnpublishVolume', { volume_id, node_id: 'n1' });
    await call(controller, 'ControllerUnpublishVolume', { volume_id, node_id: 'n1' });
    await attach('n2');
    await call(controller, 'ControllerUnpublishVolume', { volume_id });
    await call(controller, 'DeleteVolume', { volume_id });
  });
});

test('--capabilities-off takes capabilities and their calls away', async (t) => {
  const off = 'LIST_VOLUMES,CLONE_VOLUME,SINGLE_NODE_MULTI_WRITER,node:EXPAND_VOLUME';
  const { driver: _, ...clients } = await startDriver(t, ['--capabilities-off', off]);
  const controllerHas = (await call(clients.controller, 'ControllerGetCapabilities', {})).capabilities ?? [];
  const nodeHas = (await call(clients.node, 'NodeGetCapabilities', {})).capabilities ?? [];
  assert.deepEqual(
    nodeHas.map((capability) => capability.rpc?.type),
    ['STAGE_UNSTAGE_VOLUME', 'GET_VOLUME_STATS'],
  );
  const types = new Set(controllerHas.map((capability) => capability.rpc?.type));
  assert.equal(types.has('EXPAND_VOLUME'), true);
  assert.equal(types.has('LIST_VOLUMES'), false);
  await assert.rejects(call(clients.controller, 'ListVolumes', {}), failsWith(status.UNIMPLEMENTED, /LIST_VOLUMES/));
  const { volume_id } = await createVolume(clients, { name: 'v' });
  const clone = { name: 'w', volume_content_source: { volume: { volume_id } } };
  await assert.rejects(createVolume(clients, clone), failsWith(status.INVALID_ARGUMENT, /not supported/));
  const mode = { name: 'x', volume_capabilities: [{ mount: {}, access_mode: { mode: 'SINGLE_NODE_MULTI_WRITER' } }] };
  await assert.rejects(
    createVolume(clients, mode as CreateVolumeRequest),
    failsWith(status.INVALID_ARGUMENT, /SINGLE_NODE_MULTI_WRITER is not supported/),
  );
});

describe('injected faults', () => {
  test('spoil as many calls as they say, then let the work through', async (t) => {
    const { driver, ...clients } = await startDriver(t);
    await driver.setFaults([
      { method: 'CreateVolume', code: 'UNAVAILABLE', message: 'not now', times: 2 },
      { method: 'DeleteVolume', code: 'INTERNAL' },
    ]);
    for (const left of [1, 0]) {
      await assert.rejects(createVolume(clients, { name: 'v' }), failsWith(status.UNAVAILABLE, /^not now$/));
      assert.equal((await driver.faults())[0]?.times, left);
    }
    assert.deepEqual(await readdir(path.join(driver.stateDir, 'volumes')), []);
    const { volume_id } = await createVolume(clients, { name: 'v' });
    for (const _ of [1, 2, 3]) {
      await assert.rejects(
        call(clients.controller, 'DeleteVolume', { volume_id }),
        failsWith(status.INTERNAL, /injected INTERNAL/),
      );
    }
    assert.deepEqual(await readdir(path.join(driver.stateDir, 'volumes')), [volume_id]);
  });

  test('with `after` the work is done although the call fails', async (t) => {
    const { driver, ...clients } = await startDriver(t);
    await driver.setFaults([{ method: 'CreateVolume', code: 'DEADLINE_EXCEEDED', after: true, times: 1 }]);
    await assert.rejects(createVolume(clients, { name: 'done' }), failsWith(status.DEADLINE_EXCEEDED));
    const [id, ...others] = await readdir(path.join(driver.stateDir, 'volumes'));
    assert.deepEqual(others, []);
    assert.equal((await createVolume(clients, { name: 'done' })).volume_id, id);
  });

  test('with `unlessThere` only calls fail whose volume is not there', async (t) => {
    const { driver, ...clients } = await startDriver(t);
    const { volume_id } = await createVolume(clients, { name: 'there' });
    await driver.setFaults([{ method: 'CreateVolume', code: 'RESOURCE_EXHAUSTED', unlessThere: true }]);
    assert.equal((await createVolume(clients, { name: 'there' })).volume_id, volume_id);
    await assert.rejects(createVolume(clients, { name: 'new' }), failsWith(status.RESOURCE_EXHAUSTED));
  });

  test('a delayed call is finished although the caller is gone', async (t) => {
    const { driver, ...clients } = await startDriver(t);
    await driver.setFaults([{ method: 'CreateVolume', delayMs: 300, times: 1 }]);
    const request = { name: 'late', volume_capabilities: [mountCapability] };
    const late = call(clients.controller, 'CreateVolume', request, (running) => {
      void until(async () => (await driver.faults())[0]?.times === 0).then(() => running.cancel());
    });
    await assert.rejects(late, failsWith(status.CANCELLED));
    assert.deepEqual(await readdir(path.join(driver.stateDir, 'volumes')), [], 'gave up before the work');
    await until(
      async () => existsSync(path.join(driver.stateDir, 'calls.jsonl')) && (await driver.calls()).length === 1,
    );
    const [record] = await driver.calls();
    assert.equal(record?.cancelled, true);
    assert.ok(record.ms >= 290, `took ${record.ms} ms`);
    assert.equal((await readdir(path.join(driver.stateDir, 'volumes'))).length, 1);
  });

  for (const { when, after, made } of [
    { when: 'before the work', after: false, made: 0 },
    { when: 'before the answer', after: true, made: 1 },
  ]) {
    test(`a call that is held ${when} goes on once the file holds none`, async (t) => {
      const { driver, ...clients } = await startDriver(t);
      await driver.setFaults([{ method: 'CreateVolume', hold: true, after, times: 1 }]);
      const held = createVolume(clients, { name: 'held' });
      const volumes = () => readdir(path.join(driver.stateDir, 'volumes'));
      await until(async () => (await driver.faults())[0]?.times === 0 && (await volumes()).length === made);
      const { volume_id: next } = await createVolume(clients, { name: 'next' });
      assert.equal((await volumes()).length, made + 1);
      await driver.setFaults([{ method: 'DeleteVolume', hold: true }]);
      const { volume_id: id } = await held;
      assert.deepEqual((await volumes()).toSorted(), [id, next].toSorted());
      const names = (await driver.calls()).map(({ request }) => (request as { name?: string }).name);
      assert.deepEqual(names, ['next', 'held']);
    });
  }

  test('a hanging call answers nobody and does nothing', async (t) => {
    const { driver, ...clients } = await startDriver(t);
    await driver.setFaults([{ method: 'CreateVolume', hang: true, times: 1 }]);
    const request = { name: 'never', volume_capabilities: [mountCapability] };
    const hanging = call(clients.controller, 'CreateVolume', request, (running) => {
      void until(async () => (await driver.faults())[0]?.times === 0).then(() => running.cancel());
    });
    await assert.rejects(hanging, failsWith(status.CANCELLED));
    await createVolume(clients, { name: 'next' });
    const names = (await call(clients.controller, 'ListVolumes', {})).entries?.length;
    assert.equal(names, 1);
  });

  test('a faults file that makes no sense fails every call', async (t) => {
    const { driver, ...clients } = await startDriver(t);
    await writeFile(path.join(driver.stateDir, 'faults.json'), '[{"method":"CreateVolume","code":"NO_SUCH_CODE"}]');
    await assert.rejects(call(clients.identity, 'Probe', {}), failsWith(status.INTERNAL, /unknown code/));
  });
});

test('the call log has every call, and no secret value reaches any file or stream', async (t) => {
  const { driver, ...clients } = await startProcess(t);
  const secrets = { password: 'hunter2-hunter2', user: 'joe-joe-joe' };
  const parameters = { requireSecret: 'password' };
  const { volume_id } = await createVolume(clients, { name: 'with-secret', parameters, secrets });
  await assert.rejects(
    createVolume(clients, { name: 'with-secret', secrets, volume_capabilities: [blockCapability] }),
    failsWith(status.ALREADY_EXISTS),
  );
  await call(clients.controller, 'CreateSnapshot', { name: 's', source_volume_id: volume_id, secrets });
  const calls = await driver.calls();
  assert.deepEqual(
    calls.map(({ method, code }) => [method, code]),
    [
      ['CreateVolume', 'OK'],
      ['CreateVolume', 'ALREADY_EXISTS'],
      ['CreateSnapshot', 'OK'],
    ],
  );
  assert.deepEqual(calls[0]?.request, {
    name: 'with-secret',
    volume_capabilities: [mountCapability],
    parameters,
    secrets: ['password', 'user'],
  });
  assert.match(calls[1]?.message ?? '', /different access type/);
  assert.ok(calls.every(({ time, ms }) => !Number.isNaN(Date.parse(time)) && ms >= 0));
  await driver.end();
  const files = await readdir(driver.stateDir, { recursive: true, withFileTypes: true });
  const texts = await Promise.all(
    files.filter((file) => file.isFile()).map((file) => readFile(path.join(file.parentPath, file.name), 'utf8')),
  );
  assert.ok(texts.length >= 3, 'records and the log were read');
  for (const written of [...texts, await driver.errors]) assert.doesNotMatch(written, /hunter2|joe-joe/);
});

describe('the node service', () => {
  test('says clearly that it may not mount, and leaves nothing behind', async (t) => {
    // Without a PATH there is no mount command: the same answer as for a process without the right to mount.
    const flags = ['--capabilities-off', 'STAGE_UNSTAGE_VOLUME'];
    const { driver, ...clients } = await startProcess(t, { flags, env: { PATH: '/nonexistent' } });
    const { volume_id } = await createVolume(clients, { name: 'unmountable' });
    const target_path = path.join(driver.home, 'target');
    await assert.rejects(
      call(clients.node, 'NodePublishVolume', { volume_id, target_path, volume_capability: mountCapability }),
      failsWith(status.FAILED_PRECONDITION, /may not mount/),
    );
    assert.equal(existsSync(target_path), false);
    await call(clients.controller, 'DeleteVolume', { volume_id });
  });

  test('mounts a staged volume at its target and takes it away again', async (t) => {
    if (!(await mayMount())) {
      t.skip('this process may not mount');
      return;
    }
    const { driver, ...clients } = await startDriver(t);
    const { node, controller } = clients;
    const { volume_id } = await createVolume(clients, { name: 'mounted', capacity_range: { required_bytes: gib } });
    const staging_target_path = path.join(driver.home, 'staging');
    const target_path = path.join(driver.home, 'target');
    await mkdir(staging_target_path);
    const publish = async (more: object = {}) =>
      call(node, 'NodePublishVolume', {
        volume_id,
        staging_target_path,
        target_path,
        volume_capability: mountCapability,
        readonly: true,
        ...more,
      });
    t.after(async () => {
      await call(node, 'NodeUnpublishVolume', { volume_id, target_path }).catch(() => undefined);
      await call(node, 'NodeUnstageVolume', { volume_id, staging_target_path }).catch(() => undefined);
    });
    await assert.rejects(publish(), failsWith(status.FAILED_PRECONDITION, /not staged/));
    const stage = { volume_id, staging_target_path, volume_capability: mountCapability };
    for (const _ of [1, 2]) await call(node, 'NodeStageVolume', stage);
    for (const _ of [1, 2]) await publish();
    await assert.rejects(publish({ readonly: false }), failsWith(status.ALREADY_EXISTS));
    await writeFile(path.join(staging_target_path, 'file'), 'seen');
    assert.equal(await readFile(path.join(target_path, 'file'), 'utf8'), 'seen');
    await assert.rejects(writeFile(path.join(target_path, 'file'), 'no'), { code: 'EROFS' });
    const { usage } = await call(node, 'NodeGetVolumeStats', { volume_id, volume_path: target_path });
    const bytes = usage?.find((entry) => entry.unit === 'BYTES');
    assert.equal(bytes?.total, String(gib));
    assert.equal(Number(bytes.used) + Number(bytes.available), gib);
    const inUse = failsWith(status.FAILED_PRECONDITION, /is mounted at/);
    await assert.rejects(call(controller, 'DeleteVolume', { volume_id }), inUse);
    for (const _ of [1, 2]) await call(node, 'NodeUnpublishVolume', { volume_id, target_path });
    assert.equal(existsSync(target_path), false);
    for (const _ of [1, 2]) await call(node, 'NodeUnstageVolume', { volume_id, staging_target_path });
    assert.deepEqual(await readdir(staging_target_path), []);
    const content = path.join(driver.stateDir, 'volumes', volume_id, 'data', 'file');
    assert.equal(await readFile(content, 'utf8'), 'seen');
    await call(controller, 'DeleteVolume', { volume_id });
  });
});

async function mayMount(): Promise<boolean> {
  const folder = await mkdtemp(path.join(tmpdir(), 'may-mount-'));
  try {
    await promisify(execFile)('mount', ['--bind', folder, folder]);
    await promisify(execFile)('umount', [folder]);
    return true;
  } catch {
    return false;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Waits for something that only another process can make true. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  await eventually(async () => assert.ok(await holds()));
}
