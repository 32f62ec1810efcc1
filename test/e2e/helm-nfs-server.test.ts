/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** `helm upgrade` from the public chart nfs-server-provisioner to the one of this repository, on a real cluster. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1Container, V1PersistentVolumeClaim, V1Service, V1StatefulSet } from '@kubernetes/client-node';
import manifest from '../../package.json' with { type: 'json' };
import { serverAddress } from '../../provisioners/nfs-server/server-address.ts';
import { connect, KubeClient } from '../../src/index.ts';
import { connectAdmin, ifFound, type Admin } from '../support/admin.ts';
import type { Cluster } from '../support/cluster.ts';
import { startCluster } from '../support/start-cluster.ts';
import { eventually } from '../support/eventually.ts';
import { chartsFolder, Helm, HelmError, type Values } from '../support/helm/helm.ts';
import { helmOnKubernetes } from '../support/helm/helm-for-tests.ts';
import { originalCharts, serverStandIn } from '../support/helm/original-releases.ts';
import { findNfsPrograms } from '../support/nfs/nfs-programs.ts';
import { isThere, NfsScene } from '../support/nfs/nfs-scene.ts';
import { refusedRights } from '../support/refused-rights.ts';
import { changesBetween, HelmRelease } from './helm-release.ts';

const { version } = manifest;

const chartName = 'nfs-server-provisioner';
const ours = join(chartsFolder, chartName);
const helmFound = await helmOnKubernetes();
const nfsPrograms = await findNfsPrograms();
const originals = helmFound.skip === false ? originalCharts() : undefined;
const changesOfUpgrade = { changed: ['StatefulSet'], added: ['Role', 'RoleBinding'], lost: [] };

for (const { from, folder: given } of [
  { from: 'a stand-in for the original', folder: undefined },
  ...(originals === undefined ? [] : [{ from: 'the original', folder: join(originals, chartName) }]),
]) {
  describe(`helm upgrade from ${from} to ${chartName} with ${helmFound.title}`, { skip: helmFound.skip }, () => {
    const id = randomBytes(4).toString('hex');
    const releases: HelmRelease[] = [];
    let cluster: Cluster;
    let admin: Admin;
    let helm: Helm;
    let folder: string;
    let serial = 0;

    before(async () => {
      cluster = await startCluster();
      admin = connectAdmin(cluster.adminKubeconfig);
      helm = new Helm(helmFound.program, [`--kubeconfig=${cluster.adminKubeconfig}`]);
      folder = await mkdtemp(join(tmpdir(), 'helm-nfs-server-'));
      await admin.core.createNamespace({ body: { metadata: { name: `helm-${id}` } } });
    });
    afterEach(async () => {
      for (const release of releases.splice(0)) await release.uninstall();
    });
    after(async () => {
      await ifFound(admin.core.deleteNamespace({ name: `helm-${id}` }));
      await helm[Symbol.asyncDispose]();
      await cluster.stop();
      await rm(folder, { recursive: true, force: true });
    });

    interface Installed {
      release: HelmRelease;
      fullname: string;
      values: Values;
      className: string;
    }
    /** Installs the original, with a class of a name of its own. */
    const installOriginal = async (more: Values = {}, namespace = `helm-${id}`): Promise<Installed> => {
      const name = `r${++serial}-${id}`;
      const className = `${name}-class`;
      const values = { persistence: { enabled: true }, storageClass: { name: className }, ...more };
      const chart = given ?? (await serverStandIn(join(folder, name), { release: name, namespace, values }));
      const release = new HelmRelease({ helm, admin, name, namespace });
      releases.push(release);
      await release.install(chart, values);
      return { release, fullname: `${name}-${chartName}`, values, className };
    };
    const containerOf = async (release: HelmRelease): Promise<V1Container> => {
      const { spec } = await release.one<V1StatefulSet>('StatefulSet');
      const [container] = spec?.template.spec?.containers ?? [];
      assert.ok(container);
      return container;
    };
    /** The claim that the controller makes of the template. */
    const dataClaim = async (release: HelmRelease): Promise<V1PersistentVolumeClaim> =>
      await eventually(() =>
        admin.core.readNamespacedPersistentVolumeClaim({
          name: `data-${release.name}-${chartName}-0`,
          namespace: release.namespace,
        }),
      );

    test('changes the StatefulSet and adds a Role, while address, claim and class stay', async () => {
      const { release, fullname, values } = await installOriginal();
      const claim = await dataClaim(release);
      const old = await release.objects();
      const { spec: oldSpec } = await release.one<V1Service>('Service');
      const notes = await release.upgrade(ours, values);
      assert.match(notes, /with the image nfs-provisioner:v/);
      assert.doesNotMatch(notes, /WARNING/);
      assert.deepEqual(changesBetween(old, await release.objects()), changesOfUpgrade);
      const { spec } = await release.one<V1Service>('Service');
      assert.equal(spec?.clusterIP, oldSpec?.clusterIP);
      assert.deepEqual(spec?.ports, oldSpec?.ports);
      assert.equal((await dataClaim(release)).metadata?.uid, claim.metadata?.uid);
      const claims = await admin.core.listNamespacedPersistentVolumeClaim({ namespace: release.namespace });
      const ofRelease = claims.items.map(({ metadata }) => metadata?.name).filter((name) => name?.includes(fullname));
      assert.deepEqual(ofRelease, [`data-${fullname}-0`], 'no claim is made for another name');
    });

    test('leaves the Service as the address of volumes, which the account may read', async () => {
      const { release, fullname, values } = await installOriginal();
      await release.upgrade(ours, values);
      const { namespace } = release;
      const { spec } = await release.one<V1Service>('Service');
      const { ports: containerPorts = [], env = [] } = await containerOf(release);
      const podIp = '10.244.0.7';
      // what the controller for Endpoints makes of a ready Pod
      const ports = (spec?.ports ?? []).map(({ name = '', targetPort, protocol = '' }) => ({
        name,
        protocol,
        port: containerPorts.find((each) => each.name === targetPort)?.containerPort ?? NaN,
      }));
      await admin.core.createNamespacedEndpoints({
        namespace,
        body: { metadata: { name: fullname }, subsets: [{ addresses: [{ ip: podIp }], ports }] },
      });
      const kubeconfig = await cluster.accountKubeconfig('', { namespace, name: fullname });
      await using transport = connect({ kubeconfig });
      const address = await serverAddress(
        {
          outOfCluster: false,
          serverHostname: '',
          podIp,
          serviceName: env.find(({ name }) => name === 'SERVICE_NAME')?.value ?? '',
          podNamespace: namespace,
          nodeName: '',
          nfsV3: true,
        },
        {
          client: new KubeClient({ transport, fieldManager: 'test' }),
          onUnstable: () => assert.fail('there is a Service'),
          signal: AbortSignal.timeout(30_000),
        },
      );
      assert.equal(address, spec?.clusterIP);
      await ifFound(admin.core.deleteNamespacedEndpoints({ namespace, name: fullname }));
    });

    for (const { flags, image } of [
      { flags: [], image: 'ours' },
      { flags: ['--reset-then-reuse-values'], image: 'ours' },
      { flags: ['--reuse-values'], image: 'of the original' },
    ]) {
      test(`with ${flags[0] ?? 'no values and no flags'} succeeds, and the image is ${image}`, async () => {
        const { release } = await installOriginal();
        const [old, { image: oldImage }] = [await release.objects(), await containerOf(release)];
        const notes = await release.upgrade(ours, undefined, flags);
        const isOurs = image === 'ours';
        assert.equal((await containerOf(release)).image, isOurs ? `nfs-provisioner:v${version}` : oldImage);
        assert.equal(/WARNING: The image \S+ is the one of the original/.test(notes), !isOurs);
        const { changed, ...others } = changesBetween(old, await release.objects());
        assert.deepEqual(changed, isOurs ? ['StatefulSet'] : []);
        assert.deepEqual(others, { added: ['Role', 'RoleBinding'], lost: [] });
      });
    }

    test('can be rolled back, and done again, on the same claim', async () => {
      const { release, values } = await installOriginal();
      const claim = await dataClaim(release);
      const first = await release.objects();
      await release.upgrade(ours, values);
      await release.rollback(1);
      assert.deepEqual(changesBetween(first, await release.objects()), { changed: [], added: [], lost: [] });
      await release.upgrade(ours, values);
      assert.deepEqual(changesBetween(first, await release.objects()), changesOfUpgrade);
      const set = await release.one<V1StatefulSet>('StatefulSet');
      await release.upgrade(ours, values);
      const again = await release.one<V1StatefulSet>('StatefulSet');
      assert.equal(again.metadata?.generation, set.metadata?.generation, 'a second time changes nothing');
      assert.equal((await dataClaim(release)).metadata?.uid, claim.metadata?.uid);
    });

    test('warns where volumes are lost with the Pod, and keeps the empty folder', async () => {
      const { release, values } = await installOriginal({ persistence: { enabled: false } });
      const old = await release.objects();
      assert.match(await release.upgrade(ours, values), /WARNING: persistence.enabled is false/);
      assert.deepEqual(changesBetween(old, await release.objects()), changesOfUpgrade);
    });

    test('refuses NFS version 4 alone, and another claim, of a release that exists', async () => {
      const { release, values, className } = await installOriginal();
      const old = await release.objects();
      for (const [change, words] of [
        [
          { nfsv4Only: true, storageClass: { name: className, mountOptions: ['vers=4.1'] } },
          /nfsv4Only is for new releases/,
        ],
        [{ persistence: { enabled: true, size: '5Gi' } }, /updates to statefulset spec/],
      ] as const) {
        const refused = await release
          .upgrade(ours, { ...values, ...change }, ['--atomic', '--timeout=2s'])
          .catch((error: unknown) => error);
        assert.ok(refused instanceof HelmError, String(refused));
        assert.match(refused.message, words);
      }
      const { lost } = changesBetween(old, await release.objects());
      assert.deepEqual(lost, []);
    });

    test('keeps a volume served that a claim got before', { skip: nfsPrograms.missing ?? false }, async () => {
      await using scene = await NfsScene.make(nfsPrograms);
      const { namespace } = scene;
      const { release, fullname, values, className } = await installOriginal({}, namespace);
      /** Starts the program with the arguments and the account of the Pod, but outside of the cluster. */
      const start = async (): Promise<void> => {
        const { args = [] } = await containerOf(release);
        const kubeconfig = await scene.accountKubeconfig('', fullname);
        await scene.start(args, { kubeconfig, env: { POD_NAMESPACE: namespace } });
      };
      await start();
      const claim = await scene.createClaim(className);
      const volume = await scene.bound(claim);
      const file = join(scene.directory(claim), 'file');
      await scene.rig.write(file, 'of before');
      await scene.program.stop();

      await release.upgrade(ours, values);
      await start();
      const later = await scene.createClaim(className);
      const second = await scene.bound(later);
      assert.equal(second.spec?.nfs?.server, volume.spec?.nfs?.server);
      assert.deepEqual(second.spec?.mountOptions, volume.spec?.mountOptions);
      assert.equal((await scene.bound(claim)).metadata?.uid, volume.metadata?.uid);
      assert.equal(await scene.rig.read(file), 'of before');
      for (const [each, of] of [
        [claim, volume],
        [later, second],
      ] as const) {
        await scene.deleteClaim(each);
        await scene.gone(of);
        assert.equal(await isThere(scene.directory(each)), false);
      }
      assert.deepEqual(refusedRights(scene.program.log()), []);
      assert.doesNotMatch(scene.program.log(), /Not permitted/);
      await release.uninstall();
    });
  });
}
