/** Start-up: what the driver and the API server are asked, and what ends the start. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { eventually } from '../../support/eventually.ts';
import { type Answer, DriverFailure, RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { Program } from '../../support/program.ts';
import { StoredCluster } from '../csi/stored-cluster.ts';
import { freePort } from '../../support/free-ports.ts';
import { Wire } from '../provision/wire.ts';

const unavailable = new DriverFailure(status.UNAVAILABLE, 'not set up');

interface Options {
  controller?: string[];
  flags?: string[];
  script?: (driver: RecordingDriver) => void;
}

/** The program beside a driver and an API server, and what it sends there. */
async function start({ controller = ['CREATE_DELETE_VOLUME'], flags = [], script }: Options = {}) {
  await using opened = new AsyncDisposableStack();
  const driver = opened.use(await RecordingDriver.start({ controller }));
  script?.(driver);
  const cluster = opened.use(await StoredCluster.start([]));
  const wire = opened.use(new Wire({ origin: cluster.url, onAnswer: () => undefined }));
  const program = opened.use(new Program({ socketPath: driver.socketPath, apiUrl: cluster.url, flags }));
  const stack = opened.move();
  const asked = (path: string): number => wire.requests.filter((request) => request.path === path).length;
  const read = (plural: string): boolean =>
    wire.requests.some(({ path }) => path.split('?')[0]?.endsWith(plural) === true);
  return { driver, program, asked, read, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

describe('a start ends when', () => {
  const rows: { row: string; method: string; answer: Answer; code: number; line: RegExp }[] = [
    {
      row: 'Probe fails otherwise than by its deadline',
      method: 'Probe',
      answer: new DriverFailure(status.UNIMPLEMENTED, 'no'),
      code: 1,
      line: /^E.*\] CSI driver probe failed: rpc error: code = Unimplemented desc = no$/,
    },
    {
      row: 'GetPluginInfo fails',
      method: 'GetPluginInfo',
      answer: unavailable,
      code: 255,
      line: /^F.*\] Error getting CSI driver name: rpc error: code = Unavailable desc = not set up$/,
    },
    {
      row: 'the name is empty',
      method: 'GetPluginInfo',
      answer: {},
      code: 255,
      line: /^F.*\] Error getting CSI driver name: driver name is empty$/,
    },
    ...['GetPluginCapabilities', 'ControllerGetCapabilities'].map((method) => ({
      row: `${method} fails`,
      method,
      answer: unavailable,
      code: 255,
      line: /^F.*\] Error getting CSI driver capabilities: rpc error: code = Unavailable desc = not set up$/,
    })),
  ];
  for (const { row, method, answer, code, line } of rows) {
    test(`${row}, with code ${code}`, async () => {
      await using started = await start({ script: (driver) => driver.always(method, answer) });
      assert.deepEqual(await started.program.ended, { code });
      assert.match((started.program.lines.at(-1) ?? '').trimEnd(), line);
      assert.equal(started.driver.callsOf(method).length, 1, 'asked once');
    });
  }

  test('its port is in use, with code 255', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    try {
      await using started = await start({ flags: [`--http-endpoint=127.0.0.1:${port}`] });
      assert.deepEqual(await started.program.ended, { code: 255 });
      assert.match(
        started.program.lines.at(-1) ?? '',
        new RegExp(
          `\\] Failed to start HTTP server at specified address \\("127\\.0\\.0\\.1:${port}"\\) and metrics path ` +
            `\\("/metrics"\\): listen tcp 127\\.0\\.0\\.1:${port}: bind: address already in use\\n$`,
        ),
      );
    } finally {
      other.close();
    }
  });
});

describe('at the start', () => {
  test('the driver is asked by Probe, for its name and for its capabilities, once each, and not by NodeGetInfo', async () => {
    await using started = await start();
    await started.program.logged('Started provisioner controller');
    assert.deepEqual(
      started.driver.calls.map(({ method }) => method),
      ['Probe', 'GetPluginInfo', 'GetPluginCapabilities', 'ControllerGetCapabilities'],
    );
  });

  test('each call has a deadline of its own, by --timeout', async () => {
    await using started = await start({ flags: ['--timeout=1h'] });
    await started.program.logged('Started provisioner controller');
    for (const { method, deadline } of started.driver.calls) {
      const leftMs = Number(deadline) - Date.now();
      assert.ok(leftMs > 3_000_000 && leftMs <= 3_600_500, `${method}: ${leftMs} ms`);
    }
  });

  test('with --timeout=0 each Probe times out, and the wait never ends', async () => {
    await using started = await start({ flags: ['--timeout=0'] });
    await started.program.logged('CSI driver probe timed out');
    assert.deepEqual(started.driver.calls, []);
  });

  test('the HTTP port is closed until the driver is ready', async () => {
    const port = await freePort();
    const go = Promise.withResolvers<object>();
    await using started = await start({
      flags: [`--http-endpoint=127.0.0.1:${port}`],
      script: (driver) => driver.next('ControllerGetCapabilities', () => go.promise),
    });
    await started.driver.called('ControllerGetCapabilities');
    await assert.rejects(fetch(`http://127.0.0.1:${port}/metrics`), { message: 'fetch failed' });
    go.resolve({ capabilities: [{ rpc: { type: 'CREATE_DELETE_VOLUME' } }] });
    await started.program.logged('Listening for HTTP');
    assert.equal((await fetch(`http://127.0.0.1:${port}/metrics`)).status, 200);
  });

  for (const [controller, watched] of [
    [['CREATE_DELETE_VOLUME'], false],
    [['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME'], true],
  ] as const) {
    test(`VolumeAttachments are ${watched ? '' : 'not '}read with ${controller.join(', ')}`, async () => {
      await using started = await start({ controller: [...controller] });
      await started.program.logged('Started provisioner controller');
      assert.equal(started.read('/volumeattachments'), watched);
      await started.program.logged(
        watched
          ? 'CSI driver supports PUBLISH_UNPUBLISH_VOLUME, watching VolumeAttachments'
          : 'CSI driver does not support PUBLISH_UNPUBLISH_VOLUME, not watching VolumeAttachments',
      );
    });
  }

  test('nodes and CSINodes are not read for a driver without topology, nor grants without their gate', async () => {
    await using started = await start();
    await started.program.logged('Started provisioner controller');
    for (const plural of ['/nodes', '/csinodes', '/referencegrants', '/csistoragecapacities', '/leases']) {
      assert.equal(started.read(plural), false, plural);
    }
    for (const plural of ['/storageclasses', '/persistentvolumeclaims', '/persistentvolumes']) {
      assert.equal(started.read(plural), true, plural);
    }
  });

  for (const [flags, asked] of [
    [[], 1],
    [['--feature-gates=VolumeAttributesClass=true'], 0],
    [['--feature-gates=VolumeAttributesClass=false'], 0],
  ] as const) {
    test(`VolumeAttributesClass is looked for ${asked} times with ${flags.join(' ') || 'no gate named'}`, async () => {
      await using started = await start({ flags: [...flags] });
      await started.program.logged('Started provisioner controller');
      assert.equal(started.asked('/apis/storage.k8s.io/v1'), asked);
    });
  }

  const snapshots = ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT'];
  const discovery = '/apis/snapshot.storage.k8s.io/v1';
  for (const interval of ['0', '-1s']) {
    test(`with --snapshot-orphan-sweep-interval=${interval} the snapshot API is not looked for, and nothing is swept`, async () => {
      await using started = await start({
        controller: snapshots,
        flags: [`--snapshot-orphan-sweep-interval=${interval}`],
      });
      await started.program.logged('Started provisioner controller');
      assert.equal(started.asked(discovery), 0);
      assert.equal(started.read('/volumesnapshots'), false);
    });
  }

  test('with a sweep interval and the capability the snapshot API is looked for, then swept', async () => {
    await using started = await start({ controller: snapshots });
    await started.program.logged('Started provisioner controller');
    await eventually(() => assert.equal(started.read('/volumesnapshots'), true));
    assert.equal(started.asked(discovery), 1);
  });
});
