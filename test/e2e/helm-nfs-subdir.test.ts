/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** `helm upgrade` from the public chart nfs-subdir-external-provisioner to the one of this repository, on a real cluster. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1Deployment, V1PersistentVolume, V1Role, V1StorageClass } from '@kubernetes/client-node';
import manifest from '../../package.json' with { type: 'json' };
import { type Admin, boundClaim, connectAdmin, assertVolumeGone, ifFound } from '../support/admin.ts';
import type { Cluster } from '../support/cluster.ts';
import { startCluster } from '../support/start-cluster.ts';
import { eventually } from '../support/eventually.ts';
import { chartsFolder, Helm, HelmError, type Values } from '../support/helm/helm.ts';
import { helmOnKubernetes } from '../support/helm/helm-for-tests.ts';
import { originalCharts, subdirStandIn } from '../support/helm/original-releases.ts';
import { startNfsSubdir } from '../support/nfs-subdir-process.ts';
import { refusedRights } from '../support/refused-rights.ts';
import type { StartedProcess } from '../support/started-process.ts';
import { changesBetween, HelmRelease } from './helm-release.ts';

const { version } = manifest;

const chartName = 'nfs-subdir-external-provisioner';
const ours = join(chartsFolder, chartName);
const helmFound = await helmOnKubernetes();
const originals = helmFound.skip === false ? originalCharts() : undefined;

for (const { from, folder: given } of [
  { from: 'a stand-in for the original', folder: undefined },
  ...(originals === undefined ? [] : [{ from: 'the original', folder: join(originals, chartName) }]),
]) {
  describe(`helm upgrade from ${from} to ${chartName} with ${helmFound.title}`, { skip: helmFound.skip }, () => {
    const id = randomBytes(4).toString('hex');
    const namespace = `helm-${id}`;
    const releases: HelmRelease[] = [];
    let cluster: Cluster;
    let admin: Admin;
    let helm: Helm;
    let folder: string;
    let program: StartedProcess | undefined;
    let serial = 0;

    before(async () => {
      cluster = await startCluster();
      admin = connectAdmin(cluster.adminKubeconfig);
      helm = new Helm(helmFound.program, [`--kubeconfig=${cluster.adminKubeconfig}`]);
      folder = await mkdtemp(join(tmpdir(), 'helm-nfs-subdir-'));
      mkdirSync(join(folder, 'mount'));
      await admin.core.createNamespace({ body: { metadata: { name: namespace } } });
    });
    afterEach(async (context) => {
      await program?.stop();
      if ('passed' in context && !context.passed) console.error(program?.log());
      program = undefined;
      for (const release of releases.splice(0)) await release.uninstall();
    });
    after(async () => {
      await ifFound(admin.core.deleteNamespace({ name: namespace }));
      await helm[Symbol.asyncDispose]();
      await cluster.stop();
      await rm(folder, { recursive: true, force: true });
    });

    interface Installed {
      release: HelmRelease;
      values: Values;
      className: string;
    }
    /** Installs the original, with a class of a name of its own. */
    const installOriginal = async (nfs: Values = {}, storageClass: Values = {}): Promise<Installed> => {
      const name = `r${++serial}-${id}`;
      const className = `${name}-class`;
      const values = {
        nfs: { server: 'srv', path: '/exp', ...nfs },
        storageClass: { name: className, ...storageClass },
      };
      const chart = given ?? (await subdirStandIn(join(folder, name), { release: name, namespace, values }));
      const release = new HelmRelease({ helm, admin, name, namespace });
      releases.push(release);
      await release.install(chart, values);
      if (nfs['mountOptions'] !== undefined) await shareIsBound(release);
      return { release, values, className };
    };
    const shareOf = async ({ name }: HelmRelease) =>
      await admin.core.readNamespacedPersistentVolumeClaim({ namespace, name: `pvc-${name}-${chartName}` });
    const shareIsBound = (release: HelmRelease): Promise<void> =>
      eventually(async () => assert.equal((await shareOf(release)).status?.phase, 'Bound'));

    /** Starts the program as the Pod of the release would: its arguments, its environment, its account. */
    const start = async (release: HelmRelease): Promise<StartedProcess> => {
      const { spec } = await release.one<V1Deployment>('Deployment');
      const { containers, serviceAccountName: name = '' } = spec?.template.spec ?? { containers: [] };
      const environment = Object.fromEntries((containers[0]?.env ?? []).map((each) => [each.name, each.value]));
      program = await startNfsSubdir(
        {
          ...environment,
          MOUNT_POINT: join(folder, 'mount'),
          KUBECONFIG: await cluster.accountKubeconfig('', { namespace, name }),
          POD_NAMESPACE: namespace,
        },
        containers[0]?.args,
      );
      return program;
    };
    const stop = async (): Promise<string> => {
      await program?.stop();
      return program?.log() ?? '';
    };
    const hopeless = (): string | undefined => (program?.running() === true ? undefined : program?.log());

    const createClaim = async (storageClassName: string): Promise<string> => {
      const name = `claim-${++serial}`;
      const spec = { storageClassName, accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Mi' } } };
      await admin.core.createNamespacedPersistentVolumeClaim({ namespace, body: { metadata: { name }, spec } });
      return name;
    };
    const bound = async (name: string): Promise<V1PersistentVolume> =>
      (await eventually(() => boundClaim(admin, namespace, name), { hopeless })).volume;
    const onDisk = ({ spec }: V1PersistentVolume, prefix = ''): string =>
      join(folder, 'mount', spec?.nfs?.path.replace('/exp/', prefix) ?? 'none');
    /** Deletes the claim, after which the directory is archived with its data. */
    const archive = async (claim: string, volume: V1PersistentVolume): Promise<void> => {
      writeFileSync(join(onDisk(volume), 'file'), claim);
      await admin.core.deleteNamespacedPersistentVolumeClaim({ name: claim, namespace });
      await eventually(() => assertVolumeGone(admin, volume.metadata?.name ?? ''), { hopeless });
      assert.ok(!existsSync(onDisk(volume)));
      assert.equal(readFileSync(join(onDisk(volume, 'archived-'), 'file'), 'utf8'), claim);
    };
    const imageOf = async (release: HelmRelease): Promise<string> => {
      const { spec } = await release.one<V1Deployment>('Deployment');
      return spec?.template.spec?.containers[0]?.image ?? '';
    };

    test('changes the image and adds a right, and volumes of before are bound, and deleted after', async () => {
      const { release, values, className } = await installOriginal();
      await start(release);
      const kept = await createClaim(className);
      const volume = await bound(kept);
      assert.match(await stop(), /Not permitted to use Leases/, 'with the rights of the original');

      const old = await release.objects();
      const notes = await release.upgrade(ours, values);
      assert.match(notes, /with the image csi-provisioner-nfs-subdir:v/);
      assert.doesNotMatch(notes, /WARNING/);
      const fresh = await release.objects();
      assert.deepEqual(changesBetween(old, fresh), { changed: ['Deployment', 'Role'], added: [], lost: [] });
      const label = fresh.get(`StorageClass ${className}`)?.metadata.labels?.['chart'] ?? '';
      assert.doesNotMatch(label, /-4\.0\./);

      await start(release);
      const claim = await createClaim(className);
      const later = await bound(claim);
      assert.deepEqual(
        [later.spec?.nfs?.server, later.spec?.storageClassName],
        [volume.spec?.nfs?.server, volume.spec?.storageClassName],
      );
      assert.equal((await bound(kept)).metadata?.uid, volume.metadata?.uid);
      await archive(kept, volume);
      await archive(claim, later);
      const log = await stop();
      assert.deepEqual(refusedRights(log), []);
      assert.doesNotMatch(log, /Not permitted/);
    });

    test('leaves volume and claim of a share with mount options bound', async () => {
      const { release, values, className } = await installOriginal({ mountOptions: ['nfsvers=4.1', 'hard'] });
      await start(release);
      const claim = await createClaim(className);
      const volume = await bound(claim);
      assert.deepEqual(volume.spec?.mountOptions, ['nfsvers=4.1', 'hard']);
      await stop();

      const old = await release.objects();
      await release.upgrade(ours, values);
      const fresh = await release.objects();
      assert.deepEqual(changesBetween(old, fresh), { changed: ['Deployment', 'Role'], added: [], lost: [] });
      const { spec, status } = await shareOf(release);
      assert.deepEqual([spec?.volumeName, status?.phase], [`pv-${release.name}-${chartName}`, 'Bound']);
      await start(release);
      assert.deepEqual((await bound(await createClaim(className))).spec?.mountOptions, volume.spec.mountOptions);
      await archive(claim, volume);
    });

    for (const { flags, fromValues, image, nfs } of [
      { flags: [], fromValues: false, image: 'ours', nfs: {} },
      { flags: ['--reset-then-reuse-values'], fromValues: false, image: 'ours', nfs: {} },
      { flags: ['--reuse-values'], fromValues: false, image: 'of the original', nfs: { mountOptions: ['hard'] } },
      { flags: ['--reset-values'], fromValues: true, image: 'ours', nfs: {} },
    ]) {
      test(`with ${flags[0] ?? 'no values and no flags'} succeeds, and the image is ${image}`, async () => {
        const { release, values } = await installOriginal(nfs);
        const [old, oldImage] = [await release.objects(), await imageOf(release)];
        const notes = await release.upgrade(ours, fromValues ? values : undefined, flags);
        const isOurs = image === 'ours';
        assert.equal(await imageOf(release), isOurs ? `csi-provisioner-nfs-subdir:v${version}` : oldImage);
        assert.equal(/WARNING: The image \S+ is the one of the original/.test(notes), !isOurs);
        const changed = isOurs ? ['Deployment', 'Role'] : ['Role'];
        assert.deepEqual(changesBetween(old, await release.objects()), { changed, added: [], lost: [] });
      });
    }

    test('a second time changes nothing at all', async () => {
      const { release, values } = await installOriginal({ mountOptions: ['hard'] });
      await release.upgrade(ours, values);
      const versions = async (): Promise<string[]> =>
        [...(await release.objects()).entries()]
          .filter(([name]) => !name.startsWith('Deployment')) // whose status its controller still writes
          .map(([name, { metadata }]) => `${name} ${metadata.resourceVersion}`);
      const [once, generation] = [
        await versions(),
        (await release.one<V1Deployment>('Deployment')).metadata?.generation,
      ];
      await release.upgrade(ours, values);
      assert.deepEqual(await versions(), once);
      assert.equal((await release.one<V1Deployment>('Deployment')).metadata?.generation, generation);
    });

    test('can be rolled back, and done again, with volumes bound all the time', async () => {
      const { release, values, className } = await installOriginal();
      const [first, firstImage] = [await release.objects(), await imageOf(release)];
      await release.upgrade(ours, values);
      await start(release);
      const claim = await createClaim(className);
      const volume = await bound(claim);
      await stop();

      await release.rollback(1);
      assert.equal(await imageOf(release), firstImage);
      assert.deepEqual(changesBetween(first, await release.objects()), { changed: [], added: [], lost: [] });
      const { rules = [] } = await release.one<V1Role>('Role');
      assert.deepEqual(
        rules.flatMap(({ resources }) => resources),
        ['endpoints'],
      );
      await start(release);
      const between = await createClaim(className);
      const second = await bound(between);
      await stop();

      await release.upgrade(ours, values);
      await start(release);
      assert.equal((await bound(claim)).metadata?.uid, volume.metadata?.uid);
      await archive(claim, volume);
      await archive(between, second);
    });

    test('of one of two releases leaves the other alone', async () => {
      const first = await installOriginal();
      const second = await installOriginal({ path: '/other' });
      const untouched = await second.release.objects();
      await first.release.upgrade(ours, first.values);
      assert.deepEqual(changesBetween(untouched, await second.release.objects()), {
        changed: [],
        added: [],
        lost: [],
      });
      await second.release.upgrade(ours, second.values);
      const changes = changesBetween(untouched, await second.release.objects());
      assert.deepEqual(changes, { changed: ['Deployment', 'Role'], added: [], lost: [] });
      await first.release.uninstall();
      assert.equal((await second.release.objects()).size, untouched.size);
    });

    test('refuses another parameter of the class, until the class is deleted, and volumes stay', async () => {
      const { release, values, className } = await installOriginal();
      await start(release);
      const claim = await createClaim(className);
      const volume = await bound(claim);
      const removing = { ...values, storageClass: { name: className, onDelete: 'delete' } };
      const refused = await release
        .upgrade(ours, removing, ['--atomic', '--timeout=2s'])
        .catch((error: unknown) => error);
      assert.ok(refused instanceof HelmError, String(refused));
      assert.match(refused.message, /immutable|Forbidden|forbidden/);
      await admin.storage.deleteStorageClass({ name: className });
      await release.upgrade(ours, removing);
      const { parameters } = await release.one<V1StorageClass>('StorageClass');
      assert.deepEqual(parameters, { archiveOnDelete: 'true', onDelete: 'delete' });
      assert.equal((await bound(claim)).metadata?.uid, volume.metadata?.uid);
    });

    test('adds what is new, and takes it away again', async () => {
      const { release, values, className } = await installOriginal();
      const extra = `${className}-extra`;
      const more = {
        ...values,
        http: { enabled: true },
        extraStorageClasses: [{ name: extra, onDelete: 'delete', mountOptions: ['soft'] }],
      };
      const old = await release.objects();
      await release.upgrade(ours, more);
      assert.deepEqual(changesBetween(old, await release.objects()), {
        changed: ['Deployment', 'Role'],
        added: ['StorageClass'],
        lost: [],
      });
      const { containers = [] } = (await release.one<V1Deployment>('Deployment')).spec?.template.spec ?? {};
      assert.equal(containers[0]?.livenessProbe?.httpGet?.path, '/healthz');
      await release.upgrade(ours, values);
      assert.equal(await ifFound(admin.storage.readStorageClass({ name: extra })), undefined);
    });
  });
}
