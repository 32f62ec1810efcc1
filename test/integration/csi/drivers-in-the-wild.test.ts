/** Habits of real drivers, one test or more for each: the whole program beside a driver that behaves so. */
import { eventually } from '../../support/eventually.ts';
import assert from 'node:assert/strict';
import http2 from 'node:http2';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { DriverFailure, RecordingDriver, type RecordedCall } from '../../support/fakes/recording-driver.ts';
import { createdVolume, encoded, startAnswers } from './encoded-answers.ts';
import { answerWith, RawGrpcServer } from './raw-grpc-server.ts';
import { driverName, resource } from '../../support/api-scene.ts';
import { Scene } from './scene.ts';

const gi = 1n << 30n;
/** One attempt only: no retry comes within a test. */
const onlyOnce = ['--retry-interval-start=1h', '--retry-interval-max=1h'];
const prefix = 'csi.storage.k8s.io/';

const volumeAnswer = (more: object = {}): object => ({ volume: { volume_id: 'vol-1', capacity_bytes: gi, ...more } });

/** Names of volumes in the order they were asked for. */
const askedFor = (driver: RecordingDriver): unknown[] =>
  driver.callsOf('CreateVolume').map(({ request }) => request['name']);

describe('capacity in the answer', () => {
  const rows = [
    { driver: 'says nothing', asked: '3Gi', bytes: undefined, saved: '3Gi' },
    { driver: 'says 0', asked: '3Gi', bytes: '0', saved: '3Gi' },
    { driver: 'rounds 1500Mi up to 2Gi', asked: '1500Mi', bytes: String(2n * gi), saved: '2Gi' },
    { driver: 'gives at least 16Mi', asked: '1Mi', bytes: String(1n << 24n), saved: '16Mi' },
  ];
  for (const { driver, asked, bytes, saved } of rows) {
    test(`a driver that ${driver}`, async () => {
      await using scene = await Scene.start();
      scene.driver.always('CreateVolume', {
        volume: { volume_id: 'vol-1', ...(bytes === undefined ? {} : { capacity_bytes: bytes }) },
      });
      scene.addClaim('c1', { resources: { requests: { storage: asked } } });
      assert.deepEqual((await scene.volume()).spec.capacity, { storage: saved });
    });
  }
});

describe('the restore size of a snapshot is only ever a lower bound', () => {
  for (const restoreSize of ['95', '4096', '1Gi']) {
    test(`a snapshot that says ${restoreSize}`, async () => {
      const snapshots = { apiVersion: 'snapshot.storage.k8s.io/v1' };
      const ref = { namespace: 'ns1', name: 'snap', uid: 'snap-uid' };
      await using scene = await Scene.start({
        controller: ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT'],
        objects: [
          {
            ...snapshots,
            kind: 'VolumeSnapshot',
            metadata: ref,
            spec: { source: { persistentVolumeClaimName: 'src' } },
            status: { boundVolumeSnapshotContentName: 'content', readyToUse: true, restoreSize },
          },
          {
            ...snapshots,
            kind: 'VolumeSnapshotContent',
            metadata: { name: 'content' },
            spec: { driver: driverName, deletionPolicy: 'Delete', source: {}, volumeSnapshotRef: ref },
            status: { snapshotHandle: 'a/b#c=d&e//1', readyToUse: true },
          },
        ],
      });
      const source = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' };
      scene.addClaim('c1', { dataSource: source });
      assert.deepEqual((await scene.volume()).spec.capacity, { storage: '1Gi' });
      const [create] = scene.driver.callsOf('CreateVolume');
      assert.deepEqual(create?.request['volume_content_source'], {
        snapshot: { snapshot_id: 'a/b#c=d&e//1' },
        type: 'snapshot',
      });
    });
  }
});

describe('ids are passed on untouched, into the volume and back to the driver', () => {
  const ids = ['pool#share##', '0001/0009//vol/', 'a=b&c=d', '4711', ' leading blank', 'ünïcödé', 'x'.repeat(192)];
  for (const id of ids) {
    test(JSON.stringify(id), async () => {
      await using scene = await Scene.start({
        script: (d) => d.always('CreateVolume', volumeAnswer({ volume_id: id })),
      });
      scene.addClaim();
      const volume = await scene.volume();
      assert.equal(volume.spec.csi.volumeHandle, id);
      scene.release(volume);
      await scene.driver.called('DeleteVolume');
      assert.deepEqual(scene.driver.callsOf('DeleteVolume')[0]?.request['volume_id'], id);
    });
  }

  test('the name of the volume as its id', async () => {
    await using scene = await Scene.start();
    scene.driver.always('CreateVolume', ({ request }: RecordedCall) => volumeAnswer({ volume_id: request['name'] }));
    scene.addClaim();
    const { metadata, spec } = await scene.volume();
    assert.equal(spec.csi.volumeHandle, metadata.name);
  });
});

describe('parameters', () => {
  test('a driver that refuses what it does not know gets its own parameters and nothing else', async () => {
    const known = new Set(['pool', 'tier']);
    const parameters = {
      pool: 'p1',
      tier: '',
      [`${prefix}fstype`]: 'ext4',
      [`${prefix}node-stage-secret-name`]: 's',
      [`${prefix}node-stage-secret-namespace`]: 'ns1',
    };
    await using scene = await Scene.start({ parameters });
    scene.driver.always('CreateVolume', ({ request }: RecordedCall) => {
      const strange = Object.keys(request['parameters'] ?? {}).filter((key) => !known.has(key));
      if (strange.length > 0) throw new DriverFailure(status.INVALID_ARGUMENT, `unknown parameters ${strange.join()}`);
      return volumeAnswer();
    });
    scene.addClaim();
    await scene.volume();
    assert.deepEqual(scene.driver.callsOf('CreateVolume')[0]?.request['parameters'], { pool: 'p1', tier: '' });
  });

  const fsTypeOf = ({ request }: RecordedCall): string =>
    (request['volume_capabilities'] as { mount?: { fs_type?: string } }[])[0]?.mount?.fs_type ?? '';
  const rows = [
    { title: 'a driver that refuses any fstype gets none unless somebody gives one', parameters: {}, accepts: '' },
    { title: 'a driver that takes xfs alone', parameters: { [`${prefix}fstype`]: 'xfs' }, accepts: 'xfs' },
  ];
  for (const { title, parameters, accepts } of rows) {
    test(title, async () => {
      await using scene = await Scene.start({ parameters });
      scene.driver.always('CreateVolume', (call: RecordedCall) => {
        if (fsTypeOf(call) !== accepts) throw new DriverFailure(status.INVALID_ARGUMENT, `fstype ${fsTypeOf(call)}`);
        return volumeAnswer();
      });
      scene.addClaim();
      assert.equal((await scene.volume()).spec.csi.fsType ?? '', accepts);
    });
  }

  test('a driver that returns its parameters, rewritten, as context', async () => {
    await using scene = await Scene.start({ parameters: { server: 'nfs', share: '/a' } });
    scene.driver.always('CreateVolume', ({ request }: RecordedCall) =>
      volumeAnswer({ volume_context: { ...(request['parameters'] as object), share: '/a/b', subdir: '' } }),
    );
    scene.addClaim();
    const { 'storage.kubernetes.io/csiProvisionerIdentity': identity, ...context } = (await scene.volume()).spec.csi
      .volumeAttributes;
    assert.deepEqual(context, { server: 'nfs', share: '/a/b', subdir: '' });
    assert.match(identity ?? '', new RegExp(`-${driverName}$`));
  });
});

describe('a driver that is not done', () => {
  test('ABORTED while it works on the name: asked again when the claim has gone meanwhile, and what it made is deleted', async () => {
    await using scene = await Scene.start();
    scene.driver.next('CreateVolume', () => {
      scene.removeClaim();
      throw new DriverFailure(status.ABORTED, 'an operation for this volume is in work');
    });
    const { metadata } = scene.addClaim();
    await scene.driver.called('DeleteVolume');
    assert.deepEqual(askedFor(scene.driver), [`pvc-${metadata.uid}`, `pvc-${metadata.uid}`]);
    assert.equal(scene.volumeNow(), undefined);
    const { message } = await scene.event('ProvisioningFailed');
    assert.equal(message, 'rpc error: code = Aborted desc = an operation for this volume is in work');
  });

  test('DEADLINE_EXCEEDED from a hung backend: asked again when the claim has gone meanwhile, and what it made is deleted', async () => {
    await using scene = await Scene.start();
    scene.driver.next('CreateVolume', () => {
      scene.removeClaim();
      throw new DriverFailure(status.DEADLINE_EXCEEDED, 'backend timed out');
    });
    scene.addClaim();
    await scene.driver.called('DeleteVolume');
    assert.equal(scene.driver.callsOf('CreateVolume').length, 2);
    assert.equal(scene.volumeNow(), undefined);
  });

  test('a driver that never answers: our deadline ends the call, the driver hears of it, and it is asked again', async () => {
    await using scene = await Scene.start({ flags: ['--timeout=1s'] });
    scene.driver.next('CreateVolume', () => new Promise<object>(() => undefined));
    scene.addClaim();
    await scene.volume();
    const { message } = await scene.event('ProvisioningFailed');
    assert.equal(message, 'rpc error: code = DeadlineExceeded desc = context deadline exceeded');
    const [first, second] = scene.driver.callsOf('CreateVolume');
    assert.equal(first?.cancelled.aborted, true);
    assert.deepEqual(second?.request, first.request);
  });

  const resets = [
    { code: http2.constants.NGHTTP2_CANCEL, name: 'CANCEL' },
    { code: http2.constants.NGHTTP2_INTERNAL_ERROR, name: 'INTERNAL_ERROR' },
    { code: http2.constants.NGHTTP2_NO_ERROR, name: 'NO_ERROR' },
  ];
  for (const { code, name } of resets) {
    test(`a stream reset with ${name} a moment before our deadline is that deadline: nobody knows what was made`, async () => {
      let claimGoes = (): void => undefined;
      await using raw = await RawGrpcServer.start((call) => {
        if (call.method !== 'CreateVolume') answerWith(call, startAnswers[call.method] ?? Buffer.alloc(0));
        else if (raw.callsOf('CreateVolume').length > 1) answerWith(call, createdVolume('vol-1'));
        else {
          claimGoes();
          setTimeout(() => call.stream.close(code), call.timeoutMs - 60);
        }
      });
      await using scene = await Scene.start({ socketPath: raw.socketPath, flags: ['--timeout=1s'] });
      claimGoes = () => scene.removeClaim();
      scene.addClaim();
      await eventually(() => assert.equal(raw.callsOf('DeleteVolume').length, 1));
      assert.equal(scene.volumeNow(), undefined);
      const { message } = await scene.event('ProvisioningFailed');
      assert.equal(message, 'rpc error: code = DeadlineExceeded desc = context deadline exceeded');
      const [first, second] = raw.callsOf('CreateVolume');
      assert.deepEqual(second?.request, first?.request);
    });
  }
});

describe('errors', () => {
  const lines = ['mount failed: exit status 32', 'Mounting command: mount', '\tOutput: bad superblock on /dev/sdb', ''];
  for (const format of ['text', 'json']) {
    test(`a message of several lines is one event and one record in each log line (${format})`, async () => {
      const details = lines.join('\n');
      const flags = [...onlyOnce, `--logging-format=${format}`, '-v=5'];
      await using scene = await Scene.start({ flags });
      scene.driver.always('CreateVolume', new DriverFailure(status.INTERNAL, details));
      scene.addClaim();
      await scene.event('ProvisioningFailed');
      const failures = scene.events().filter(({ type }) => type === 'Warning');
      const message = `rpc error: code = Internal desc = ${details}`;
      assert.deepEqual(failures, [{ type: 'Warning', reason: 'ProvisioningFailed', message, count: 1 }]);
      const about = scene.program.lines.filter((line) => line.includes('bad superblock'));
      assert.ok(about.length > 0, 'the log tells of it, too');
      for (const line of scene.program.lines) {
        assert.equal(line.indexOf('\n'), line.length - 1, line);
        if (format === 'json') JSON.parse(line);
        else assert.match(line, /^[IWEF]\d{4} /);
      }
      for (const line of about) assert.ok(line.includes('mount failed: exit status 32'), line);
    });
  }

  /** Lets other claims fail and come back three times; what was to come back by then has done so. */
  const threeRetries = async (scene: Scene): Promise<void> => {
    scene.driver.next('CreateVolume', ...Array<DriverFailure>(3).fill(new DriverFailure(status.ABORTED, 'busy')));
    scene.addClaim('other');
    await scene.volume('other');
  };

  test('UNKNOWN for everything, even wrong input: final, and forgotten when the claim goes', async () => {
    await using scene = await Scene.start();
    scene.driver.next('CreateVolume', () => {
      scene.removeClaim();
      throw new DriverFailure(status.UNKNOWN, 'wrong input');
    });
    const { uid } = scene.addClaim().metadata;
    const { message } = await scene.event('ProvisioningFailed');
    assert.equal(message, 'rpc error: code = Unknown desc = wrong input');
    await threeRetries(scene);
    assert.equal(askedFor(scene.driver).filter((name) => name === `pvc-${uid}`).length, 1);
    assert.equal(scene.volumeNow(), undefined);
  });

  test('RESOURCE_EXHAUSTED for ever: asked again and again, forgotten when the claim goes', async () => {
    await using scene = await Scene.start({ flags: ['--retry-interval-max=100ms'] });
    const full = new DriverFailure(status.RESOURCE_EXHAUSTED, 'no single term fits');
    const removing = (): never => {
      scene.removeClaim();
      throw full;
    };
    scene.driver.next('CreateVolume', full, full, full, full, removing);
    const { uid } = scene.addClaim().metadata;
    await scene.until('five calls', () => askedFor(scene.driver).length === 5);
    const { message, count } = await scene.until('one event, told several times', () =>
      scene.events().find((event) => event.type === 'Warning' && event.count >= 4),
    );
    assert.equal(message, 'rpc error: code = ResourceExhausted desc = no single term fits');
    assert.ok(count <= 5);
    await threeRetries(scene);
    assert.equal(askedFor(scene.driver).filter((name) => name === `pvc-${uid}`).length, 5);
    assert.equal(scene.volumeNow(), undefined);
  });
});

describe('topology', () => {
  test('a driver that answers its own node without announcing topology: the volume is bound to no node', async () => {
    await using scene = await Scene.start();
    scene.driver.always('CreateVolume', volumeAnswer({ accessible_topology: [{ segments: { hostname: 'node-7' } }] }));
    scene.addClaim();
    assert.equal('nodeAffinity' in (await scene.volume()).spec, false);
    assert.equal(scene.driver.callsOf('CreateVolume')[0]?.request['accessibility_requirements'], undefined);
  });
});

describe('what a driver says at the start', () => {
  test('a capability that stands twice, unknown and empty ones, GetCapacity and ListVolumes not implemented', async () => {
    await using raw = await RawGrpcServer.start((call) => {
      const newer = { rpc: { type: 4711 } };
      const twice = { rpc: { type: 'CREATE_DELETE_VOLUME' } };
      if (call.method === 'ControllerGetCapabilities') {
        answerWith(call, encoded(call.method, { capabilities: [twice, {}, newer, twice, { rpc: {} }] }));
      } else if (call.method === 'CreateVolume') answerWith(call, createdVolume('vol-1'));
      else answerWith(call, startAnswers[call.method] ?? Buffer.alloc(0));
    });
    await using scene = await Scene.start({ socketPath: raw.socketPath });
    scene.addClaim();
    assert.equal((await scene.volume()).spec.csi.volumeHandle, 'vol-1');
    const unwanted = raw.calls.filter(({ method }) => method === 'GetCapacity' || method === 'ListVolumes');
    assert.deepEqual(unwanted, []);
  });

  const probes = [
    { title: 'absent, which means ready', answers: [{}], asked: 1 },
    { title: 'false at first', answers: [{ ready: { value: false } }, { ready: { value: true } }], asked: 2 },
  ];
  for (const { title, answers, asked } of probes) {
    test(`Probe with ready ${title}`, async () => {
      await using scene = await Scene.start({ script: (driver) => driver.next('Probe', ...answers) });
      scene.addClaim();
      await scene.volume();
      assert.equal(scene.driver.callsOf('Probe').length, asked);
    });
  }

  test('a first Probe that takes longer than the timeout is asked again', async () => {
    await using scene = await Scene.start({
      flags: ['--timeout=1s'],
      script: (driver) => driver.next('Probe', () => new Promise<object>(() => undefined)),
    });
    await scene.program.logged('CSI driver probe timed out');
    scene.addClaim();
    await scene.volume();
    assert.equal(scene.driver.callsOf('Probe').length, 2);
  });

  test('a first Probe that is UNAVAILABLE ends the process with code 1, as in the original: the kubelet starts it again', async () => {
    await using scene = await Scene.start({
      script: (driver) => driver.next('Probe', new DriverFailure(status.UNAVAILABLE, 'not yet')),
    });
    assert.deepEqual(await scene.program.ended, { code: 1 });
    assert.match(
      scene.program.lines.at(-1) ?? '',
      /^E.*CSI driver probe failed: rpc error: code = Unavailable desc = not yet/,
    );
  });

  test('an empty version', async () => {
    await using scene = await Scene.start({ script: (driver) => driver.always('GetPluginInfo', { name: driverName }) });
    scene.addClaim();
    await scene.volume();
  });

  test('GetPluginInfo UNAVAILABLE until the driver is set up ends the process with code 255, as in the original', async () => {
    await using scene = await Scene.start({
      script: (driver) => driver.next('GetPluginInfo', new DriverFailure(status.UNAVAILABLE, 'no node id yet')),
    });
    assert.deepEqual(await scene.program.ended, { code: 255 });
    assert.match(
      scene.program.lines.at(-1) ?? '',
      /^F.*Error getting CSI driver name: rpc error: code = Unavailable desc = no node id yet/,
    );
  });

  test('a name that is empty ends the process with code 255', async () => {
    await using scene = await Scene.start({ script: (driver) => driver.always('GetPluginInfo', { name: '' }) });
    assert.deepEqual(await scene.program.ended, { code: 255 });
    assert.match(scene.program.lines.at(-1) ?? '', /Error getting CSI driver name: driver name is empty/);
  });
});

describe('speed', () => {
  test('many claims at once reach the driver side by side', async () => {
    await using scene = await Scene.start();
    let atOnce = 0;
    let most = 0;
    const everyoneIsHere = Promise.withResolvers<undefined>();
    scene.driver.always('CreateVolume', async ({ request }: RecordedCall) => {
      most = Math.max(most, (atOnce += 1));
      if (atOnce === 8) everyoneIsHere.resolve(undefined);
      await everyoneIsHere.promise;
      atOnce -= 1;
      return volumeAnswer({ volume_id: request['name'] });
    });
    for (let serial = 1; serial <= 8; serial++) scene.addClaim(`c${serial}`);
    await scene.until('eight volumes', () => scene.api.list(resource.volumes).length === 8);
    assert.equal(most, 8);
    assert.equal(new Set(askedFor(scene.driver)).size, 8);
    assert.equal(scene.driver.callsOf('CreateVolume').length, 8);
  });

  test('a driver with one lock, which answers others ABORTED, comes to an end, too', async () => {
    await using scene = await Scene.start({ flags: ['--retry-interval-max=200ms'] });
    let busy = false;
    scene.driver.always('CreateVolume', async ({ request }: RecordedCall) => {
      if (busy) throw new DriverFailure(status.ABORTED, 'busy');
      busy = true;
      await new Promise((resolve) => setTimeout(resolve, 10)); // how long this driver needs
      busy = false;
      return volumeAnswer({ volume_id: request['name'] });
    });
    for (let serial = 1; serial <= 5; serial++) scene.addClaim(`c${serial}`);
    await scene.until('five volumes', () => scene.api.list(resource.volumes).length === 5);
    assert.equal(new Set(askedFor(scene.driver)).size, 5);
  });

  test('a volume that the driver does not know any more is gone', async () => {
    await using scene = await Scene.start(); // DeleteVolume answers OK for any id
    scene.addClaim();
    const volume = await scene.volume();
    scene.release(volume);
    await scene.volumeDeleted();
    assert.equal(scene.driver.callsOf('DeleteVolume').length, 1);
  });

  test('a slow deletion does not hold up creation', async () => {
    await using scene = await Scene.start();
    const slow = Promise.withResolvers<object>();
    scene.driver.always('DeleteVolume', () => slow.promise);
    scene.addClaim('old');
    scene.release(await scene.volume('old'));
    await scene.driver.called('DeleteVolume');
    scene.addClaim('new');
    await scene.volume('new');
    slow.resolve({});
    await scene.volumeDeleted('old');
  });
});

describe('secrets on delete', () => {
  test('a driver that leaves the folder without them gets them, by the annotations and not by the class', async () => {
    const parameters = {
      [`${prefix}provisioner-secret-name`]: "${pvc.annotations['who']}",
      [`${prefix}provisioner-secret-namespace`]: 'vault',
    };
    const data = { user: Buffer.from('me').toString('base64') };
    await using scene = await Scene.start({
      parameters,
      objects: [{ apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'vault', name: 'tenant' }, data }],
    });
    scene.addClaim('c1', {}, { annotations: { who: 'tenant' } });
    const volume = await scene.volume();
    scene.removeClaim(); // annotations of the claim cannot be read any more
    scene.release(volume);
    await scene.volumeDeleted();
    const requests = scene.driver.callsOf('DeleteVolume').map(({ request }) => request);
    assert.deepEqual(requests, [{ volume_id: 'vol-1', secrets: { user: 'me' } }]);
  });
});

describe('proto versions', () => {
  test('fields of an answer that are newer than we are mean nothing', async () => {
    /** Field 4711, a string. */
    const newer = Buffer.from([0xba, 0xa6, 0x02, 0x03, 0x6e, 0x65, 0x77]);
    await using raw = await RawGrpcServer.start((call) => {
      const known = call.method === 'CreateVolume' ? createdVolume('vol-1') : startAnswers[call.method];
      answerWith(call, Buffer.concat([known ?? Buffer.alloc(0), newer]));
    });
    await using scene = await Scene.start({ socketPath: raw.socketPath });
    scene.addClaim();
    assert.equal((await scene.volume()).spec.csi.volumeHandle, 'vol-1');
  });
});

describe('a driver that starts anew', () => {
  /** Another driver process on the socket of one that has died. */
  const successor = (scene: Scene, options: object = {}): Promise<RecordingDriver> =>
    RecordingDriver.start({ socketPath: scene.driver.socketPath, ...options });
  const writers = (driver: RecordingDriver): unknown =>
    (driver.callsOf('CreateVolume')[0]?.request['volume_capabilities'] as { access_mode: unknown }[])[0]?.access_mode;

  test('is noticed without a call, found again at once and asked anew', async () => {
    await using scene = await Scene.start();
    scene.addClaim('before');
    await scene.volume('before');
    assert.deepEqual(writers(scene.driver), { mode: 'SINGLE_NODE_WRITER' });
    scene.driver.kill();
    await scene.program.logged('Lost connection');
    const controller = ['CREATE_DELETE_VOLUME', 'SINGLE_NODE_MULTI_WRITER'];
    await using next = await successor(scene, { controller });
    await scene.program.logged('The driver came back"');
    assert.deepEqual(
      next.calls.map(({ method }) => method),
      ['Probe', 'GetPluginInfo', 'GetPluginCapabilities', 'ControllerGetCapabilities'],
    );
    scene.addClaim('after');
    await scene.volume('after');
    assert.deepEqual(writers(next), { mode: 'SINGLE_NODE_MULTI_WRITER' });
  });

  test('in the middle of a call: the claim is provisioned by its successor', async () => {
    await using scene = await Scene.start();
    scene.driver.next('CreateVolume', () => new Promise<object>(() => undefined));
    scene.addClaim();
    await scene.driver.called('CreateVolume');
    scene.driver.kill();
    await using next = await successor(scene);
    const { metadata } = await scene.volume();
    assert.deepEqual(new Set(askedFor(next)), new Set([metadata.name]));
    const { message } = await scene.event('ProvisioningFailed');
    assert.equal(message, 'rpc error: code = Unavailable desc = error reading from server: EOF');
  });

  test('without knowing who it is for a while: it is asked until it does', async () => {
    await using scene = await Scene.start();
    await scene.program.logged('Starting provisioner controller');
    scene.driver.kill();
    await scene.program.logged('Lost connection');
    const controller = ['CREATE_DELETE_VOLUME', 'SINGLE_NODE_MULTI_WRITER'];
    await using next = await successor(scene, { controller });
    next.next('Probe', new DriverFailure(status.UNAVAILABLE, 'not yet'));
    next.next('GetPluginInfo', new DriverFailure(status.UNAVAILABLE, 'no node id yet'));
    await scene.program.logged('The driver came back"');
    scene.addClaim();
    await scene.volume();
    assert.deepEqual(writers(next), { mode: 'SINGLE_NODE_MULTI_WRITER' });
  });

  test('under another name: the process ends with code 1, and no call about a volume reaches the stranger', async () => {
    await using scene = await Scene.start({ flags: ['--retry-interval-max=50ms'] });
    scene.driver.always('CreateVolume', new DriverFailure(status.ABORTED, 'busy'));
    scene.addClaim(); // comes back every 50 ms
    await scene.driver.called('CreateVolume', 3);
    scene.driver.kill();
    await scene.program.logged('Lost connection');
    await using next = await successor(scene, { name: 'other.example.com' });
    next.next('GetPluginInfo', async () => {
      await scene.until('three more attempts', () => {
        const away = scene.events().find(({ message }) => message.includes('the CSI driver is not connected'));
        return away !== undefined && away.count >= 3;
      });
      return { name: 'other.example.com' };
    });
    assert.deepEqual(await scene.program.ended, { code: 1 });
    assert.match(scene.program.lines.at(-1) ?? '', /changed its name from d\.example\.com to other\.example\.com/);
    assert.deepEqual(next.callsOf('CreateVolume'), []);
  });
});
