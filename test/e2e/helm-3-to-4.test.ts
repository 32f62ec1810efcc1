/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** Releases that Helm 3 installed and Helm 4 upgrades, and fields of a release that kubectl has changed. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1Deployment } from '@kubernetes/client-node';
import { connectAdmin, ifFound, type Admin } from '../support/admin.ts';
import type { Cluster } from '../support/cluster.ts';
import { startCluster } from '../support/start-cluster.ts';
import { eventually } from '../support/eventually.ts';
import { chartsFolder, Helm, HelmError, type Values } from '../support/helm/helm.ts';
import { bothHelmsOnKubernetes } from '../support/helm/helm-for-tests.ts';
import { serverStandIn, subdirStandIn } from '../support/helm/original-releases.ts';
import { findKubectl, runKubectl } from '../support/kubectl.ts';
import { changesBetween, HelmRelease } from './helm-release.ts';

const helms = await bothHelmsOnKubernetes();

for (const { chart, standIn, workload, claimPrefix, phase, changes, more } of [
  {
    chart: 'nfs-subdir-external-provisioner',
    standIn: subdirStandIn,
    workload: 'Deployment',
    claimPrefix: 'pvc-',
    phase: 'Bound',
    changes: { changed: ['Deployment', 'Role'], added: [], lost: [] },
    more: { nfs: { server: 'srv', path: '/exp', mountOptions: ['hard'] } },
  },
  {
    chart: 'nfs-server-provisioner',
    standIn: serverStandIn,
    workload: 'StatefulSet',
    claimPrefix: 'data-',
    phase: 'Pending',
    changes: { changed: ['StatefulSet'], added: ['Role', 'RoleBinding'], lost: [] },
    more: { persistence: { enabled: true } },
  },
]) {
  describe(`the chart ${chart} with Helm 4`, { skip: helms.skip }, () => {
    const id = randomBytes(4).toString('hex');
    const namespace = `helm-${id}`;
    const ours = join(chartsFolder, chart);
    const releases: HelmRelease[] = [];
    let cluster: Cluster;
    let admin: Admin;
    let helm3: Helm;
    let helm4: Helm;
    let folder: string;
    let serial = 0;

    before(async () => {
      cluster = await startCluster();
      admin = connectAdmin(cluster.adminKubeconfig);
      const flags = [`--kubeconfig=${cluster.adminKubeconfig}`];
      [helm3, helm4] = [new Helm(helms.helm3, flags), new Helm(helms.helm4, flags)];
      folder = await mkdtemp(join(tmpdir(), 'helm-3-to-4-'));
      await admin.core.createNamespace({ body: { metadata: { name: namespace } } });
    });
    afterEach(async () => {
      for (const release of releases.splice(0)) await release.uninstall();
    });
    after(async () => {
      await ifFound(admin.core.deleteNamespace({ name: namespace }));
      await helm3[Symbol.asyncDispose]();
      await helm4[Symbol.asyncDispose]();
      await cluster.stop();
      await rm(folder, { recursive: true, force: true });
    });

    /** The stand-in for the original, as a release of one Helm. */
    const installOriginal = async (
      helm: Helm,
      others: Values = {},
    ): Promise<{ release: HelmRelease; values: Values }> => {
      const name = `r${++serial}-${id}`;
      const values = { ...more, ...others, storageClass: { name: `${name}-class` } };
      const release = new HelmRelease({ helm, admin, name, namespace });
      releases.push(release);
      await release.install(await standIn(join(folder, name), { release: name, namespace, values }), values);
      return { release, values };
    };
    const claimOf = async ({ name }: HelmRelease) =>
      await eventually(async () => {
        const claim = await admin.core.readNamespacedPersistentVolumeClaim({
          namespace,
          name: `${claimPrefix}${name}-${chart}${workload === 'StatefulSet' ? '-0' : ''}`,
        });
        assert.equal(claim.status?.phase, phase);
        return claim;
      });
    const imageOf = async (release: HelmRelease): Promise<string | undefined> =>
      (await release.one<V1Deployment>(workload)).spec?.template.spec?.containers[0]?.image;
    const setImage = async ({ name }: HelmRelease, image: string): Promise<void> => {
      const kubectl = (await findKubectl()) ?? assert.fail('the control plane has a kubectl');
      const target = [`${workload.toLowerCase()}/${name}-${chart}`, `${chart}=${image}`];
      await runKubectl(kubectl, [
        `--kubeconfig=${cluster.adminKubeconfig}`,
        ...['--namespace', namespace, 'set', 'image', ...target],
      ]);
    };

    test('is upgraded from a release of the original that Helm 3 installed, and Helm 3 goes on with it', async () => {
      const { release: ofHelm3, values } = await installOriginal(helm3);
      const release = ofHelm3.with(helm4);
      const claim = await claimOf(release);
      const [first, firstImage] = [await release.objects(), await imageOf(release)];
      await release.upgrade(ours, values);
      assert.equal(await release.applyMethod(), 'csa');
      assert.deepEqual(changesBetween(first, await release.objects()), changes);
      const upgraded = await release.objects();

      await ofHelm3.rollback(1);
      assert.equal(await imageOf(release), firstImage);
      assert.deepEqual(changesBetween(first, await release.objects()), { changed: [], added: [], lost: [] });
      await ofHelm3.upgrade(ours, values);
      await release.upgrade(ours, values);
      const { changed } = changesBetween(upgraded, await release.objects());
      assert.deepEqual(changed, []);
      const { metadata, spec } = await claimOf(release);
      assert.deepEqual([metadata?.uid, spec?.volumeName], [claim.metadata?.uid, claim.spec?.volumeName]);
    });

    test('is upgraded over an image that kubectl has set, where Helm 3 installed the release', async () => {
      const { release: ofHelm3, values } = await installOriginal(helm3);
      const release = ofHelm3.with(helm4);
      await setImage(release, 'mirror/of-ours:1');
      await release.upgrade(ours, values);
      assert.match((await imageOf(release)) ?? '', /^(csi-provisioner-nfs-subdir|nfs-provisioner):v/);
    });

    test('is upgraded with --server-side=true, and with it from then on', async () => {
      const { release: ofHelm3, values } = await installOriginal(helm3);
      const release = ofHelm3.with(helm4);
      const claim = await claimOf(release);
      const first = await release.objects();
      await release.upgrade(ours, values, ['--server-side=true']);
      const upgraded = await release.objects();
      assert.deepEqual(changesBetween(first, upgraded), changes);
      await release.upgrade(ours, values);
      assert.equal(await release.applyMethod(), 'ssa');
      assert.deepEqual(changesBetween(upgraded, await release.objects()), { changed: [], added: [], lost: [] });
      const { metadata, spec } = await claimOf(release);
      assert.deepEqual([metadata?.uid, spec?.volumeName], [claim.metadata?.uid, claim.spec?.volumeName]);
    });

    test('is not upgraded over an image that kubectl has set, where Helm 4 installed it, but with --force-conflicts', async () => {
      const { release, values } = await installOriginal(helm4);
      await setImage(release, 'mirror/of-ours:1');
      const refused = await release.upgrade(ours, values).catch((error: unknown) => error);
      assert.ok(refused instanceof HelmError, String(refused));
      assert.match(refused.message, /conflict with "kubectl-set" using apps\/v1: .*image/);
      await release.upgrade(ours, values, ['--force-conflicts']);
      assert.match((await imageOf(release)) ?? '', /^(csi-provisioner-nfs-subdir|nfs-provisioner):v/);
    });

    if (workload === 'Deployment') {
      test('is changed from RollingUpdate to Recreate, once it was upgraded from the original with RollingUpdate', async () => {
        const { release, values } = await installOriginal(helm4, { strategyType: 'RollingUpdate' });
        await claimOf(release);
        const first = await release.objects();
        const recreate = { ...values, strategyType: 'Recreate' };
        const refused = await release.upgrade(ours, recreate).catch((error: unknown) => error);
        assert.ok(refused instanceof HelmError, String(refused));
        assert.match(refused.message, /spec\.strategy\.rollingUpdate: Forbidden/);
        await release.upgrade(ours, values);
        assert.deepEqual(changesBetween(first, await release.objects()), changes);
        await release.upgrade(ours, recreate);
        const { spec } = await release.one<V1Deployment>(workload);
        assert.deepEqual(spec?.strategy, { type: 'Recreate' });
      });
    }
  });
}
