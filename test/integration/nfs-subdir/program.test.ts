/** nfs-subdir-external-provisioner as a process, on the sandbox. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { after, before, describe, test } from 'node:test';
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import { Sandbox } from '../../../sandbox/sandbox.ts';
import { freePort } from '../../support/free-ports.ts';
import { eventMessage } from '../../support/event-message.ts';
import { eventually } from '../../support/eventually.ts';
import { startNfsSubdir } from '../../support/nfs-subdir-process.ts';
import type { StartedProcess } from '../../support/started-process.ts';

const provisioner = 'k8s-sigs.io/nfs-subdir-external-provisioner';
const claims = { group: '', version: 'v1', plural: 'persistentvolumeclaims' };
const volumes = { group: '', version: 'v1', plural: 'persistentvolumes' };
const classes = { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' };
const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };

interface NfsVolume extends SandboxObject {
  spec: { nfs: { path: string } };
}

/** A cluster and an export of the test's own: tests that wait do so at the same time. */
async function openScene() {
  await using opening = new AsyncDisposableStack();
  const sandbox = await Sandbox.start({ nodes: 0 });
  opening.defer(() => sandbox.close());
  const mount = await mkdtemp(path.join(tmpdir(), 'nfs-subdir-program-'));
  opening.defer(() => rm(mount, { recursive: true, force: true }));
  const running: StartedProcess[] = [];
  opening.defer(async () => {
    for (const each of running) await each.stop('SIGKILL');
  });
  let serial = 0;
  const api = () => sandbox.api.client('test');
  const environment = {
    NFS_SERVER: 'srv',
    NFS_PATH: '/exp',
    PROVISIONER_NAME: provisioner,
    MOUNT_POINT: mount,
    KUBECONFIG: sandbox.kubeconfig,
  };
  const start = async (more: Record<string, string | undefined> = {}, args: string[] = []): Promise<StartedProcess> => {
    const started = await startNfsSubdir({ ...environment, ...more }, args);
    running.push(started);
    return started;
  };
  const watched = <T>(check: () => T): Promise<T> =>
    eventually(check, {
      hopeless: () =>
        running.some((each) => each.running()) ? undefined : running.map((each) => each.log()).join('\n'),
    });
  const createClass = (parameters: Record<string, string> = {}, more: object = {}): string => {
    const name = `class-${++serial}`;
    api().create(classes, { metadata: { name }, provisioner, parameters, ...more });
    return name;
  };
  const createClaim = (storageClassName: string, spec: object = {}): { name: string; uid: string } => {
    const { metadata } = api().create(claims, {
      metadata: { name: `claim-${++serial}`, namespace: 'default' },
      spec: { storageClassName, accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Gi' } }, ...spec },
    });
    return { name: metadata.name, uid: metadata.uid ?? '' };
  };
  const deleteClaim = (name: string): void => {
    api().delete(claims, { namespace: 'default', name });
  };
  const bound = (name: string): Promise<NfsVolume> =>
    watched(() => {
      const claim = api().get(claims, { namespace: 'default', name }) as unknown as {
        spec: { volumeName?: string };
        status?: { phase?: string };
      };
      assert.equal(claim.status?.phase, 'Bound');
      const volume = api().get(volumes, { name: claim.spec.volumeName ?? '' });
      assert.ok(volume);
      return volume as unknown as NfsVolume;
    });
  const gone = (name: string): Promise<void> => watched(() => assert.equal(api().get(volumes, { name }), undefined));
  const message = (uid: string, reason: string): Promise<string> => watched(() => eventMessage(api(), uid, reason));
  const opened = opening.move();
  return {
    ...{ mount, api, start, watched, createClass, createClaim, deleteClaim, bound, gone, message },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

type Scene = Awaited<ReturnType<typeof openScene>>;

describe('nfs-subdir-external-provisioner', { concurrency: 6 }, () => {
  test('makes a directory for a claim, archives it with the claim, and ends with code 0 at SIGTERM', async () => {
    await using scene = await openScene();
    const { mount, start, createClass, createClaim, deleteClaim, bound, gone } = scene;
    const program = await start();
    const { name } = createClaim(createClass());
    const volume = await bound(name);
    const directory = `default-${name}-${volume.metadata.name}`;
    assert.deepEqual(volume.spec.nfs, {
      server: 'srv',
      path: `/exp/${directory}`,
      readOnly: false,
    });
    assert.equal(volume.metadata.annotations?.['pv.kubernetes.io/provisioned-by'], provisioner);
    writeFileSync(path.join(mount, directory, 'file'), 'x');
    deleteClaim(name);
    await gone(volume.metadata.name);
    assert.ok(existsSync(path.join(mount, `archived-${directory}`, 'file')));
    await program.stop('SIGTERM');
    assert.equal(await program.ending(), 'exit code 0');
  });

  test('50 claims at once get 50 directories', async () => {
    await using scene = await openScene();
    const { mount, start, watched, createClass, createClaim, deleteClaim, bound } = scene;
    await start();
    const className = createClass({ archiveOnDelete: 'false' });
    const names = Array.from({ length: 50 }, () => createClaim(className).name);
    const made = [];
    for (const name of names) made.push(await bound(name));
    const paths = new Set(made.map(({ spec }) => spec.nfs.path));
    assert.equal(paths.size, 50);
    for (const each of paths) assert.ok(existsSync(path.join(mount, path.basename(each))));
    for (const name of names) deleteClaim(name);
    await watched(() => assert.ok([...paths].every((each) => !existsSync(path.join(mount, path.basename(each))))));
  });

  test('what a killed process has made for a claim that is gone is archived', async () => {
    await using scene = await openScene();
    const { mount, start, watched, createClass, createClaim, deleteClaim, bound, gone } = scene;
    const first = await start();
    await watched(() => assert.match(first.log(), /Started provisioner controller/));
    const { name, uid } = createClaim(createClass());
    const volume = await bound(name);
    await first.stop('SIGKILL');
    assert.equal(volume.metadata.name, `pvc-${uid}`);
    deleteClaim(name);
    await start();
    await gone(volume.metadata.name);
    assert.ok(existsSync(path.join(mount, `archived-default-${name}-pvc-${uid}`)));
  });

  test('processes that are killed leave nothing of claims that go meanwhile', { timeout: 3_600_000 }, async () => {
    await using scene = await openScene();
    const { mount, api, start, watched, createClass, createClaim, deleteClaim } = scene;
    const rounds = Number(process.env['KILL_ROUNDS'] ?? 2);
    const className = createClass({ onDelete: 'delete' });
    const before = new Set(readdirSync(mount));
    const made = () => readdirSync(mount).filter((name) => !before.has(name) && name !== '.share-identity');
    for (let round = 1; round <= rounds; round++) {
      const program = await start();
      await watched(() => assert.match(program.log(), /Started provisioner controller/));
      const names = Array.from({ length: 12 }, () => createClaim(className).name);
      await watched(() => assert.notEqual(made().length, 0));
      await delay(Math.random() * 200); // at whatever step
      await program.stop('SIGKILL');
      for (const name of names) deleteClaim(name);
    }
    await start();
    await watched(() => assert.deepEqual(made(), []));
    await watched(() => {
      const ours = api().list(volumes) as unknown as { spec: { storageClassName?: string } }[];
      assert.deepEqual(
        ours.filter(({ spec }) => spec.storageClassName === className),
        [],
      );
    });
  });

  test('of two, one works; when it is killed the other goes on', async () => {
    await using scene = await openScene();
    const { mount, api, start, watched, createClass, createClaim, bound } = scene;
    const both = [await start(), await start()];
    const working = () => both.filter((each) => each.log().includes('Started provisioner controller'));
    await watched(() => assert.equal(working().length, 1));
    await watched(() => assert.ok(both.every((each) => each.log().includes('Attempting to acquire leader lease'))));
    const [leader] = working();
    const lockName = 'k8s-sigs.io-nfs-subdir-external-provisioner';
    assert.ok(
      api().get(leases, { namespace: 'default', name: lockName }),
      'the name that the original has for its lock',
    );
    await leader?.stop('SIGKILL');
    const { name } = createClaim(createClass());
    await bound(name);
    assert.equal(readdirSync(mount).filter((each) => each.includes(name)).length, 1);
  });

  test('locks in the namespace of POD_NAMESPACE, and events on the lock name it as the original', async () => {
    await using scene = await openScene();
    const { api, start, watched } = scene;
    const namespace = 'locks';
    api().create({ group: '', version: 'v1', plural: 'namespaces' }, { metadata: { name: namespace } });
    await start({ POD_NAMESPACE: namespace });
    const { metadata } = await watched(() => {
      const found = api().get(leases, { namespace, name: 'k8s-sigs.io-nfs-subdir-external-provisioner' });
      assert.ok(found);
      return found;
    });
    const event = await watched(() => {
      const events = api().list({ group: '', version: 'v1', plural: 'events' }) as unknown as {
        involvedObject: { uid?: string };
        message: string;
        source: { component: string };
      }[];
      const found = events.find(({ involvedObject }) => involvedObject.uid === metadata.uid);
      assert.ok(found);
      return found;
    });
    const holder = `${hostname()}[_-][0-9a-f-]{36}`;
    assert.match(event.message, new RegExp(`^${holder} became leader$`));
    assert.match(event.source.component, new RegExp(`^${provisioner}_${holder}$`));
  });

  test('an empty export in the place of the share takes no volume along, and all goes on when the share is back', async () => {
    await using scene = await openScene();
    const { mount, api, start, watched, createClass, createClaim, deleteClaim, bound, gone, message } = scene;
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const program = await start({ HTTP_ENDPOINT: `127.0.0.1:${port}` });
    const ready = async (): Promise<number> => (await fetch(`${url}/readyz`)).status;
    const metrics = async (): Promise<string> => (await fetch(`${url}/metrics`)).text();
    const className = createClass({ onDelete: 'delete' });
    const { name } = createClaim(className);
    const { metadata } = await bound(name);
    await eventually(async () => assert.equal(await ready(), 200));
    assert.match(await metrics(), /nfs_subdir_share_usable 1/);
    const identity = readFileSync(path.join(mount, '.share-identity'), 'utf8').trim();
    const lock = { namespace: 'default', name: 'k8s-sigs.io-nfs-subdir-external-provisioner' };
    const noted = () => api().get(leases, lock)?.metadata.annotations;
    assert.equal(noted()?.['nfs-subdir-external-provisioner/share-identity'], identity);

    renameSync(mount, `${mount}-aside`);
    mkdirSync(mount);
    deleteClaim(name);
    const later = createClaim(className);
    const text = /has no file \.share-identity: it is empty, not mounted, or another one/;
    assert.match(await message(metadata.uid ?? '', 'VolumeFailedDelete'), text);
    assert.match(await message(later.uid, 'ProvisioningFailed'), text);
    await program.stop('SIGTERM');
    const next = await start();
    await watched(() => assert.match(next.log(), /The export cannot be used/));
    assert.match(await message(api().get(leases, lock)?.metadata.uid ?? '', 'ShareUnusable'), text);
    assert.deepEqual(readdirSync(mount), [], 'nothing was made there');
    assert.ok(api().get(volumes, { name: metadata.name }));

    rmSync(mount, { recursive: true });
    renameSync(`${mount}-aside`, mount);
    await gone(metadata.name);
    await bound(later.name);
  });

  describe('without leader election', { concurrency: true }, () => {
    let scene: Scene;
    before(async () => {
      scene = await openScene();
      await scene.start({ ENABLE_LEADER_ELECTION: 'false' });
    });
    after(() => scene[Symbol.asyncDispose]());

    test('never touches the directory of a class that retains', async () => {
      const { mount, createClass, createClaim, deleteClaim, bound, gone } = scene;
      const { name } = createClaim(createClass({}, { reclaimPolicy: 'Retain' }));
      const { metadata } = await bound(name);
      deleteClaim(name);
      const other = createClaim(createClass({ onDelete: 'delete' }));
      const { metadata: later } = await bound(other.name);
      deleteClaim(other.name);
      await gone(later.name);
      assert.ok(existsSync(path.join(mount, `default-${name}-${metadata.name}`)));
    });

    test('refuses block volumes and paths out of the export with an event on the claim', async () => {
      const { mount, createClass, createClaim, deleteClaim, message } = scene;
      const block = createClaim(createClass(), { volumeMode: 'Block' });
      const stray = `stray-${path.basename(mount)}`;
      const outside = createClaim(createClass({ pathPattern: `a/../../${stray}` }));
      assert.equal(
        await message(block.uid, 'ProvisioningFailed'),
        `${provisioner} does not support block volume provisioning`,
      );
      assert.match(
        await message(outside.uid, 'ProvisioningFailed'),
        /pathPattern "a\/\.\.\/\.\.\/stray-.*" gives no path.*component "\.\."/,
      );
      assert.ok(!existsSync(path.join(mount, '..', stray)));
      for (const { name } of [block, outside]) deleteClaim(name);
    });

    test('a class that was missing at deletion is found when it is there again', async () => {
      const { mount, api, createClass, createClaim, deleteClaim, bound, gone, message } = scene;
      const className = createClass({ onDelete: 'delete' });
      const { name } = createClaim(className);
      const { metadata } = await bound(name);
      api().delete(classes, { name: className });
      deleteClaim(name);
      assert.match(await message(metadata.uid ?? '', 'VolumeFailedDelete'), /does not exist any more/);
      api().create(classes, {
        metadata: { name: className },
        provisioner,
        parameters: { onDelete: 'delete' },
      });
      await gone(metadata.name);
      assert.ok(!existsSync(path.join(mount, `default-${name}-${metadata.name}`)));
    });

    test('a directory that a static volume has, too, is kept until that is deleted', async () => {
      const { mount, api, createClass, createClaim, deleteClaim, bound, gone, message } = scene;
      const { name } = createClaim(createClass({ onDelete: 'delete' }));
      const { metadata, spec } = await bound(name);
      const directory = path.join(mount, path.basename(spec.nfs.path));
      writeFileSync(path.join(directory, 'file'), 'of both');
      const statics = ['the-same', 'inside'].map((each) => `${each}-${name}`);
      const paths = [spec.nfs.path, `${spec.nfs.path}/below`];
      for (const [index, each] of statics.entries()) {
        api().create(volumes, {
          metadata: { name: each },
          spec: {
            nfs: { server: 'srv', path: paths[index] },
            capacity: { storage: '1Gi' },
            accessModes: ['ReadWriteMany'],
          },
        });
      }
      deleteClaim(name);
      const text =
        /which another provisioner or an administrator created, uses .* is kept until \S+ is deleted\. If \S+ uses another directory: kubectl annotate/;
      assert.match(await message(metadata.uid ?? '', 'VolumeFailedDelete'), text);
      assert.ok(existsSync(path.join(directory, 'file')));
      for (const each of statics) api().delete(volumes, { name: each });
      await gone(metadata.name);
      assert.ok(!existsSync(directory));
    });

    test('asks for no Lease', async () => {
      const { api, createClass, createClaim, bound } = scene;
      await bound(createClaim(createClass()).name);
      assert.deepEqual(api().list(leases), []);
    });
  });

  describe('does not start', { concurrency: 2 }, () => {
    let scene: Scene;
    before(async () => {
      scene = await openScene();
    });
    after(() => scene[Symbol.asyncDispose]());

    for (const [what, change, why] of [
      ['without NFS_SERVER', { NFS_SERVER: undefined }, /error NFS_SERVER not set\n/],
      ['with an empty NFS_PATH', { NFS_PATH: '' }, /error NFS_PATH not set\n/],
      [
        'without PROVISIONER_NAME',
        { PROVISIONER_NAME: undefined },
        /environment variable PROVISIONER_NAME is not set! Please set it\.\n/,
      ],
      [
        'with an election that is neither on nor off',
        { ENABLE_LEADER_ELECTION: 'maybe' },
        /Unable to parse ENABLE_LEADER_ELECTION env var: strconv/,
      ],
      ['without a cluster', { KUBECONFIG: undefined, KUBERNETES_SERVICE_HOST: undefined }, /KUBERNETES_SERVICE_HOST/],
      ['with a kubeconfig that is not there', { KUBECONFIG: '/nowhere/config' }, /\/nowhere\/config/],
    ] as const) {
      test(`${what}, and writes nothing into the export`, async () => {
        const { mount, start } = scene;
        const empty = await mkdtemp(path.join(mount, 'empty-'));
        const program = await start({ MOUNT_POINT: empty, ...change });
        assert.equal(await program.ending(), 'exit code 1');
        assert.match(program.log(), why);
        assert.doesNotMatch(program.log(), /\n\s+at /, 'no stack');
        assert.deepEqual(readdirSync(empty), []);
      });
    }

    test('with --help, after it has named its variables', async () => {
      const { start } = scene;
      const program = await start({ NFS_SERVER: undefined }, ['--help']);
      assert.equal(await program.ending(), 'exit code 0');
      for (const name of ['NFS_SERVER', 'NFS_PATH', 'PROVISIONER_NAME', 'ENABLE_LEADER_ELECTION', 'KUBECONFIG'])
        assert.ok(program.log().includes(`  ${name}\n`), name);
    });

    test('with a flag that it does not have', async () => {
      const { start } = scene;
      const program = await start({}, ['--port=1']);
      assert.equal(await program.ending(), 'exit code 2');
      assert.match(program.log(), /flag provided but not defined: "--port=1"/);
    });
  });
});
