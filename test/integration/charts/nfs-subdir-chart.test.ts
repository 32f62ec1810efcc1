/** What the chart nfs-subdir-external-provisioner renders; for most values, exactly what the public chart of that name does. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type {
  V1ClusterRoleBinding,
  V1Deployment,
  V1PersistentVolume,
  V1PersistentVolumeClaim,
  V1PodDisruptionBudget,
  V1Role,
  V1RoleBinding,
  V1ServiceAccount,
  V1StorageClass,
} from '@kubernetes/client-node';
import { readLeaderElection, readSettings } from '../../../provisioners/nfs-subdir/settings.ts';
import { ChartObjects } from '../../support/helm/chart-objects.ts';
import { chartsFolder, HelmError, type Rendering, type Values } from '../../support/helm/helm.ts';
import { describeWithHelms, helmsForTests } from '../../support/helm/helm-for-tests.ts';

const chartName = 'nfs-subdir-external-provisioner';
const chart = `${chartsFolder}/${chartName}`;
const fullname = `rel-${chartName}`;
const share = { server: '10.0.0.5', path: '/srv/nfs' };

describeWithHelms(await helmsForTests(), 'the chart nfs-subdir-external-provisioner', (helm) => {
  const render = async (
    { nfs, ...values }: Values & { nfs?: Values } = {},
    options: Partial<Rendering> = {},
  ): Promise<ChartObjects> =>
    new ChartObjects(await helm.template({ chart, values: { nfs: { ...share, ...nfs }, ...values }, ...options }));
  const refusal = async (values: Values, options: Partial<Rendering> = {}): Promise<string> => {
    const error = await render(values, options).then(
      () => assert.fail('it renders'),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof HelmError, String(error));
    return error.message;
  };

  describe('objects and names', () => {
    const namesOf = (full: string): string[] => [
      `ClusterRole ${full}-runner`,
      `ClusterRoleBinding run-${full}`,
      `Deployment ${full}`,
      `Role leader-locking-${full}`,
      `RoleBinding leader-locking-${full}`,
      `ServiceAccount ${full}`,
      'StorageClass nfs-client',
    ];

    test('are seven by default', async () => {
      assert.deepEqual((await render()).names, namesOf(fullname));
    });

    for (const { title, release, values, full } of [
      { title: 'have the name of a release that is called like the chart once', release: chartName, full: chartName },
      {
        title: 'have the name of a release that contains that of the chart',
        release: `x-${chartName}-2`,
        full: `x-${chartName}-2`,
      },
      { title: 'are cut at 63 characters', release: 'a'.repeat(53), full: `${'a'.repeat(53)}-nfs-subdi` },
      { title: 'lose one dash at the cut', release: 'a'.repeat(51), full: `${'a'.repeat(51)}-nfs-subdir` },
      { title: 'follow fullnameOverride', values: { fullnameOverride: 'home' }, full: 'home' },
      { title: 'follow nameOverride', values: { nameOverride: 'nfs' }, full: 'rel-nfs' },
    ]) {
      test(`${title}, as does the provisioner`, async () => {
        const objects = await render(values, release === undefined ? {} : { release });
        assert.deepEqual(objects.names, namesOf(full));
        assert.equal(objects.one<V1StorageClass>('StorageClass').provisioner, `cluster.local/${full}`);
      });
    }

    test('have no namespace, so that it is the one of the release', async () => {
      const objects = await render({ nfs: { mountOptions: ['hard'] }, podDisruptionBudget: { enabled: true } });
      assert.deepEqual(
        objects.all.filter(({ metadata }) => metadata?.namespace !== undefined),
        [],
      );
    });

    test('are in another namespace with namespaceOverride, but for those of the cluster', async () => {
      const objects = await render({ namespaceOverride: 'other', nfs: { mountOptions: ['hard'] } });
      const inNamespace = objects.all.filter(({ metadata }) => metadata?.namespace === 'other').map(({ kind }) => kind);
      assert.deepEqual(inNamespace.sort(), [
        'Deployment',
        'PersistentVolumeClaim',
        'Role',
        'RoleBinding',
        'ServiceAccount',
      ]);
      for (const kind of ['ClusterRoleBinding', 'RoleBinding']) {
        assert.equal(objects.one<V1RoleBinding>(kind).subjects?.[0]?.namespace, 'other');
      }
    });
  });

  describe('labels', () => {
    const selector = { app: chartName, release: 'rel' };

    test('are two in the selector and on Pods, four on objects', async () => {
      const deployment = (await render()).one<V1Deployment>('Deployment');
      assert.deepEqual(deployment.spec?.selector.matchLabels, selector);
      assert.deepEqual(deployment.spec.template.metadata?.labels, selector);
      const { chart: ours, ...labels } = deployment.metadata?.labels ?? {};
      assert.deepEqual(labels, { ...selector, heritage: 'Helm' });
      assert.match(ours ?? '', /^nfs-subdir-external-provisioner-\d+\.\d+\.\d+$/);
    });

    test('keep the name of the chart with fullnameOverride', async () => {
      const { spec } = (await render({ fullnameOverride: 'home' })).one<V1Deployment>('Deployment');
      assert.deepEqual(spec?.selector.matchLabels, selector);
    });

    test('take nameOverride as app, while the container keeps the name of the chart', async () => {
      const objects = await render({ nameOverride: 'nfs' });
      const { spec } = objects.one<V1Deployment>('Deployment');
      assert.deepEqual(spec?.selector.matchLabels, { app: 'nfs', release: 'rel' });
      assert.equal(objects.container.name, chartName);
    });

    test('of the user are on every object and on Pods, in no selector', async () => {
      const objects = await render({
        labels: { team: 'x' },
        nfs: { mountOptions: ['hard'] },
        podDisruptionBudget: { enabled: true },
      });
      assert.deepEqual(
        objects.all.filter(({ metadata }) => metadata?.labels?.['team'] !== 'x'),
        [],
      );
      const { spec } = objects.one<V1Deployment>('Deployment');
      assert.equal(spec?.template.metadata?.labels?.['team'], 'x');
      assert.deepEqual(spec.selector.matchLabels, selector);
      const budget = objects.one<V1PodDisruptionBudget>('PodDisruptionBudget');
      assert.deepEqual(budget.spec?.selector?.matchLabels, selector);
    });

    test('of selectors cannot be changed by labels', async () => {
      assert.match(await refusal({ labels: { app: 'x' } }), /labels\.app cannot be set/);
      assert.match(await refusal({ labels: { release: 'x' } }), /labels\.release cannot be set/);
      await render({ labels: { app: chartName, heritage: 'me' } });
    });

    test('of a release whose name is a number are texts', async () => {
      const { spec } = (await render({}, { release: '123' })).one<V1Deployment>('Deployment');
      assert.deepEqual(spec?.selector.matchLabels, { app: chartName, release: '123' });
    });
  });

  describe('the Deployment', () => {
    test('has the annotations of Pods on Pods alone', async () => {
      const deployment = (await render({ podAnnotations: { a: 'b' } })).one<V1Deployment>('Deployment');
      assert.deepEqual(deployment.spec?.template.metadata?.annotations, { a: 'b' });
      assert.equal(deployment.metadata?.annotations, undefined);
    });

    test('has one replica and is recreated by default', async () => {
      const { spec } = (await render()).one<V1Deployment>('Deployment');
      assert.equal(spec?.replicas, 1);
      assert.deepEqual(spec.strategy, { type: 'Recreate' });
    });

    test('has replicas and strategy as given', async () => {
      const { spec } = (await render({ replicaCount: 3, strategyType: 'RollingUpdate' })).one<V1Deployment>(
        'Deployment',
      );
      assert.equal(spec?.replicas, 3);
      assert.deepEqual(spec.strategy, {
        type: 'RollingUpdate',
        rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' }, // the defaults
      });
    });

    test('keeps zero replicas', async () => {
      assert.equal((await render({ replicaCount: 0 })).one<V1Deployment>('Deployment').spec?.replicas, 0);
    });

    test('has image and pull secrets as given', async () => {
      const { container, pod } = await render({
        image: { repository: 'r/i', tag: 't', pullPolicy: 'Always' },
        imagePullSecrets: [{ name: 's' }],
      });
      assert.equal(container.image, 'r/i:t');
      assert.equal(container.imagePullPolicy, 'Always');
      assert.deepEqual(pod.imagePullSecrets, [{ name: 's' }]);
    });

    test('takes the digest of an image before its tag', async () => {
      const { container } = await render({ image: { repository: 'r/i', tag: 't', digest: 'sha256:0' } });
      assert.equal(container.image, 'r/i@sha256:0');
    });

    test('runs the program with three variables on the mounted share', async () => {
      const { container, pod } = await render();
      assert.deepEqual(container.env, [
        { name: 'PROVISIONER_NAME', value: `cluster.local/${fullname}` },
        { name: 'NFS_SERVER', value: share.server },
        { name: 'NFS_PATH', value: share.path },
      ]);
      const name = 'nfs-subdir-external-provisioner-root';
      assert.deepEqual(container.volumeMounts, [{ name, mountPath: '/persistentvolumes' }]);
      assert.deepEqual(pod.volumes, [{ name, nfs: share }]);
      for (const field of ['args', 'command', 'ports', 'livenessProbe', 'readinessProbe'] as const) {
        assert.equal(container[field], undefined, field);
      }
    });

    test('has an environment that the program accepts, with the mount point that it expects', async () => {
      const { container } = await render({ leaderElection: { enabled: false }, http: { enabled: true, port: 9090 } });
      const environment = Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value]));
      assert.deepEqual(readSettings(environment), {
        server: share.server,
        sharePath: share.path,
        provisionerName: `cluster.local/${fullname}`,
        mountPoint: container.volumeMounts?.[0]?.mountPath,
        httpEndpoint: `:${String(container.ports?.[0]?.containerPort)}`,
        namespace: undefined,
      });
      assert.equal(readLeaderElection(environment), false);
    });

    test('has one more variable without leader election', async () => {
      const { container } = await render({ leaderElection: { enabled: false } });
      assert.deepEqual(container.env?.[3], { name: 'ENABLE_LEADER_ELECTION', value: 'false' });
    });

    test('reads false for leader election as text, too', async () => {
      const { container } = await render({ leaderElection: { enabled: 'false' } });
      assert.deepEqual(container.env?.[3], { name: 'ENABLE_LEADER_ELECTION', value: 'false' });
      assert.equal((await render({ leaderElection: { enabled: 'true' } })).container.env?.length, 3);
    });

    test('names the volume of the Pod as given', async () => {
      const { container, pod } = await render({ nfs: { volumeName: 'v' } });
      assert.equal(pod.volumes?.[0]?.name, 'v');
      assert.equal(container.volumeMounts?.[0]?.name, 'v');
    });

    test('has placement, priority and resources as given', async () => {
      const fields = {
        nodeSelector: { disk: 'ssd' },
        tolerations: [{ key: 'a', operator: 'Exists' }],
        affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
        priorityClassName: 'high',
        topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
        terminationGracePeriodSeconds: 60,
      };
      const resources = { limits: { memory: '64Mi' } };
      const { container, pod } = await render({ ...fields, resources });
      assert.partialDeepStrictEqual(pod, fields);
      assert.deepEqual(container.resources, resources);
    });

    test('omits what is empty, in whatever way', async () => {
      const fields = ['nodeSelector', 'tolerations', 'affinity', 'imagePullSecrets'] as const;
      for (const empty of [{}, [], '', null]) {
        const { container, pod } = await render(
          Object.fromEntries(
            [...fields, 'resources', 'labels', 'podAnnotations', 'extraEnv'].map((name) => [name, empty]),
          ),
        );
        for (const name of fields) assert.equal(pod[name], undefined, name);
        assert.equal(container.resources, undefined);
      }
    });

    test('has security contexts as given', async () => {
      const given = { podSecurityContext: { fsGroup: 1 }, securityContext: { runAsUser: 2 } };
      const { container, pod } = await render(given);
      assert.deepEqual(pod.securityContext, { fsGroup: 1 });
      assert.deepEqual(container.securityContext, { runAsUser: 2 });
    });

    test('serves metrics and probes where http is enabled', async () => {
      const { container } = await render({ http: { enabled: true } });
      assert.deepEqual(container.env?.at(-1), { name: 'HTTP_ENDPOINT', value: ':8080' });
      assert.deepEqual(container.ports, [{ name: 'http', containerPort: 8080 }]);
      assert.deepEqual(container.livenessProbe?.httpGet, { path: '/healthz', port: 'http' });
      assert.deepEqual(container.readinessProbe?.httpGet, { path: '/readyz', port: 'http' });
    });

    test('takes further arguments, variables, volumes and mounts', async () => {
      const { container, pod } = await render({
        extraArgs: ['-v=4'],
        extraEnv: [{ name: 'A', value: 'b' }],
        extraVolumes: [{ name: 'x', emptyDir: {} }],
        extraVolumeMounts: [{ name: 'x', mountPath: '/x' }],
      });
      assert.deepEqual(container.args, ['-v=4']);
      assert.deepEqual(container.env?.at(-1), { name: 'A', value: 'b' });
      assert.deepEqual(pod.volumes?.[1], { name: 'x', emptyDir: {} });
      assert.deepEqual(container.volumeMounts?.[1], { name: 'x', mountPath: '/x' });
    });

    test('has a variable of extraEnv once, in the place of its own', async () => {
      const fromSecret = { name: 'NFS_SERVER', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } };
      const { container } = await render({ extraEnv: [fromSecret] });
      assert.deepEqual(
        container.env?.map(({ name }) => name),
        ['PROVISIONER_NAME', 'NFS_PATH', 'NFS_SERVER'],
      );
      assert.deepEqual(container.env.at(-1), fromSecret);
    });
  });

  describe('the share', () => {
    const mountOptions = ['nfsvers=4.1', 'hard'];

    test('with mount options is mounted through a claim for a volume of its own', async () => {
      const objects = await render({ nfs: { mountOptions } });
      const volume = objects.one<V1PersistentVolume>('PersistentVolume');
      assert.equal(volume.metadata?.name, `pv-${fullname}`);
      assert.equal(volume.metadata.labels?.[chartName], fullname);
      assert.deepEqual(volume.spec, {
        capacity: { storage: '10Mi' },
        volumeMode: 'Filesystem',
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: '',
        mountOptions,
        nfs: share,
      });
      const claim = objects.one<V1PersistentVolumeClaim>('PersistentVolumeClaim');
      assert.equal(claim.metadata?.name, `pvc-${fullname}`);
      assert.deepEqual(claim.spec, {
        accessModes: ['ReadWriteOnce'],
        volumeMode: 'Filesystem',
        storageClassName: '',
        selector: { matchLabels: { [chartName]: fullname } },
        resources: { requests: { storage: '10Mi' } },
      });
      assert.deepEqual(objects.pod.volumes, [
        { name: `${chartName}-root`, persistentVolumeClaim: { claimName: `pvc-${fullname}` } },
      ]);
      assert.deepEqual(objects.one<V1StorageClass>('StorageClass').mountOptions, mountOptions);
      assert.deepEqual(objects.container.env, (await render()).container.env);
    });

    test('has access mode and reclaim policy of its own', async () => {
      const objects = await render({
        nfs: { mountOptions: ['hard'], reclaimPolicy: 'Delete' },
        storageClass: { accessModes: 'ReadWriteMany', reclaimPolicy: 'Retain' },
      });
      const { spec } = objects.one<V1PersistentVolume>('PersistentVolume');
      assert.deepEqual(spec?.accessModes, ['ReadWriteMany']);
      assert.equal(spec.persistentVolumeReclaimPolicy, 'Delete');
      const claim = objects.one<V1PersistentVolumeClaim>('PersistentVolumeClaim');
      assert.deepEqual(claim.spec?.accessModes, ['ReadWriteMany']);
      assert.equal(objects.one<V1StorageClass>('StorageClass').reclaimPolicy, 'Retain');
    });

    test('keeps its volume where no class is created', async () => {
      const objects = await render({ nfs: { mountOptions }, storageClass: { create: false } });
      assert.ok(!objects.has('StorageClass'));
      assert.deepEqual(objects.one<V1PersistentVolume>('PersistentVolume').spec?.mountOptions, mountOptions);
      assert.deepEqual(objects.container.env, (await render()).container.env);
    });

    test('is an empty folder in build mode, also with mount options', async () => {
      const { pod } = await render({ nfs: { mountOptions }, buildMode: true });
      assert.deepEqual(pod.volumes, [{ name: `${chartName}-root`, emptyDir: {} }]);
      await render({ nfs: { server: null }, buildMode: true });
    });

    test('has to have a server and an absolute path', async () => {
      assert.match(await refusal({ nfs: { server: null } }), /nfs\.server is required/);
      assert.match(await refusal({ nfs: { path: 'srv' } }), /nfs\.path must be an absolute path.*"srv"/);
    });

    test('has mount options as a list, not as one text', async () => {
      assert.match(
        await refusal({ nfs: { mountOptions: 'hard' } }),
        /nfs\.mountOptions must be a list, such as \[hard\]/,
      );
    });

    test('has an access mode and a reclaim policy that exist, where there is a volume for it', async () => {
      const accessModes = ['ReadWriteMany'];
      const message = await refusal({ nfs: { mountOptions, reclaimPolicy: 'Keep' }, storageClass: { accessModes } });
      assert.match(message, /storageClass\.accessModes must be one of ReadWriteOnce,/);
      assert.match(message, /nfs\.reclaimPolicy must be one of Retain,/);
      await render({ nfs: { reclaimPolicy: 'Keep' }, storageClass: { accessModes } });
    });
  });

  describe('the StorageClass', () => {
    const classOf = async (storageClass: Values, more: Values = {}): Promise<V1StorageClass> =>
      (await render({ storageClass, ...more })).one<V1StorageClass>('StorageClass');

    test('archives and can be expanded by default', async () => {
      const { metadata, ...fields } = await classOf({});
      assert.equal(metadata?.name, 'nfs-client');
      assert.equal(metadata.annotations, undefined);
      assert.deepEqual(fields, {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        provisioner: `cluster.local/${fullname}`,
        parameters: { archiveOnDelete: 'true' },
        reclaimPolicy: 'Delete',
        allowVolumeExpansion: true,
        volumeBindingMode: 'Immediate',
      });
    });

    test('is the default one with further annotations', async () => {
      const { metadata } = await classOf({ defaultClass: true, annotations: { a: 'b' } });
      assert.deepEqual(metadata?.annotations, { 'storageclass.kubernetes.io/is-default-class': 'true', a: 'b' });
    });

    test('has parameters as texts', async () => {
      const given = { archiveOnDelete: false, onDelete: 'retain', pathPattern: '${.PVC.namespace}/${.PVC.name}' };
      assert.deepEqual((await classOf(given)).parameters, { ...given, archiveOnDelete: 'false' });
    });

    test('keeps the empty parameter that null gives, since a class cannot lose one', async () => {
      assert.deepEqual((await classOf({ archiveOnDelete: null })).parameters, { archiveOnDelete: '' });
    });

    test('takes a pattern with a quote', async () => {
      assert.equal((await classOf({ pathPattern: 'a"b' })).parameters?.['pathPattern'], 'a"b');
    });

    test('takes further parameters of the program', async () => {
      const parameters = { archiveDirectory: '.archived', archiveRetention: '30d' };
      assert.deepEqual((await classOf({ parameters })).parameters, { archiveOnDelete: 'true', ...parameters });
    });

    test('has name, policy, expansion and binding mode as given', async () => {
      const given = { reclaimPolicy: 'Retain', allowVolumeExpansion: false, volumeBindingMode: 'WaitForFirstConsumer' };
      const storageClass = await classOf({ name: 'c', ...given });
      assert.partialDeepStrictEqual(storageClass, given);
      assert.equal(storageClass.metadata?.name, 'c');
    });

    test('has a provisioner as given, which the program has, too', async () => {
      const objects = await render({ storageClass: { provisionerName: 'x/%y' } });
      assert.equal(objects.one<V1StorageClass>('StorageClass').provisioner, 'x/%y');
      assert.deepEqual(objects.container.env?.[0], { name: 'PROVISIONER_NAME', value: 'x/%y' });
    });

    test('may have mount options other than the share', async () => {
      const objects = await render({ nfs: { mountOptions: ['hard'] }, storageClass: { mountOptions: ['soft'] } });
      assert.deepEqual(objects.one<V1StorageClass>('StorageClass').mountOptions, ['soft']);
      assert.deepEqual(objects.one<V1PersistentVolume>('PersistentVolume').spec?.mountOptions, ['hard']);
      const none = await render({ nfs: { mountOptions: ['hard'] }, storageClass: { mountOptions: [] } });
      assert.equal(none.one<V1StorageClass>('StorageClass').mountOptions, undefined);
      const alone = await render({ storageClass: { mountOptions: ['soft'] } });
      assert.ok(!alone.has('PersistentVolume'));
    });

    test('may have others beside it, of the same provisioner', async () => {
      const pathPattern = '${.PVC.namespace}/${.PVC.name}';
      const objects = await render({
        nfs: { mountOptions: ['hard'] },
        extraStorageClasses: [
          { name: 'deleted', onDelete: 'delete', reclaimPolicy: 'Retain' },
          { name: 'by-name', pathPattern, archiveOnDelete: false, allowVolumeExpansion: true, mountOptions: [] },
        ],
      });
      const [, first, second] = objects.all
        .filter((each): each is V1StorageClass => each.kind === 'StorageClass')
        .toSorted((a, b) => Number(a.metadata?.name !== 'nfs-client') - Number(b.metadata?.name !== 'nfs-client'));
      assert.partialDeepStrictEqual(first, {
        metadata: { name: 'deleted' },
        provisioner: `cluster.local/${fullname}`,
        parameters: { onDelete: 'delete' },
        reclaimPolicy: 'Retain',
        allowVolumeExpansion: false,
        volumeBindingMode: 'Immediate',
        mountOptions: ['hard'],
      });
      assert.deepEqual(second?.parameters, { archiveOnDelete: 'false', pathPattern });
      assert.equal(second.mountOptions, undefined);
      assert.equal(second.allowVolumeExpansion, true);
    });
  });

  describe('rights', () => {
    test('are those of the original, and Leases', async () => {
      const objects = await render();
      assert.deepEqual(objects.one<V1Role>('Role').rules, [
        { apiGroups: [''], resources: ['endpoints'], verbs: ['get', 'list', 'watch', 'create', 'update', 'patch'] },
        {
          apiGroups: ['coordination.k8s.io'],
          resources: ['leases'],
          verbs: ['get', 'list', 'watch', 'create', 'update'],
        },
      ]);
      const binding = objects.one<V1ClusterRoleBinding>('ClusterRoleBinding');
      assert.deepEqual([binding.roleRef.kind, binding.roleRef.name], ['ClusterRole', `${fullname}-runner`]);
      const { roleRef } = objects.one<V1RoleBinding>('RoleBinding');
      assert.deepEqual([roleRef.kind, roleRef.name], ['Role', `leader-locking-${fullname}`]);
    });

    test('do not depend on leader election', async () => {
      const off = await render({ leaderElection: { enabled: false } });
      assert.deepEqual(off.one<V1Role>('Role').rules, (await render()).one<V1Role>('Role').rules);
    });

    test('can be left out, while the account stays', async () => {
      const { names } = await render({ rbac: { create: false } });
      assert.deepEqual(names, [`Deployment ${fullname}`, `ServiceAccount ${fullname}`, 'StorageClass nfs-client']);
    });

    test('are those of the default account where none is created', async () => {
      const objects = await render({ serviceAccount: { create: false } });
      assert.ok(!objects.has('ServiceAccount'));
      assert.equal(objects.pod.serviceAccountName, 'default');
      assert.equal(objects.one<V1RoleBinding>('RoleBinding').subjects?.[0]?.name, 'default');
    });

    test('are those of an account as given', async () => {
      const objects = await render({ serviceAccount: { name: 's', annotations: { a: 'b' } } });
      const { metadata } = objects.one<V1ServiceAccount>('ServiceAccount');
      assert.equal(metadata?.name, 's');
      assert.deepEqual(metadata.annotations, { a: 'b' });
      assert.equal(objects.pod.serviceAccountName, 's');
      const subjects = [{ kind: 'ServiceAccount', name: 's', namespace: 'storage' }];
      assert.deepEqual(objects.one<V1ClusterRoleBinding>('ClusterRoleBinding').subjects, subjects);
    });

    test('to a PodSecurityPolicy are only given where the cluster has that API', async () => {
      const values = { podSecurityPolicy: { enabled: true } };
      const today = await render(values);
      assert.ok(!today.has('PodSecurityPolicy'));
      assert.equal(today.one<V1Role>('Role').rules?.length, 2);
      const before = await render(values, { kubeVersion: '1.24.0' });
      assert.equal(before.one('PodSecurityPolicy').metadata?.name, fullname);
      for (const kind of ['Role', 'ClusterRole']) {
        const rule = before.one<V1Role>(kind).rules?.find(({ verbs }) => verbs.includes('use'));
        assert.deepEqual(rule?.resourceNames, [fullname]);
      }
    });
  });

  describe('the disruption budget', () => {
    const budgetOf = async (values: Values, kubeVersion = '1.33.0'): Promise<V1PodDisruptionBudget> =>
      (await render({ podDisruptionBudget: { enabled: true, ...values } }, { kubeVersion })).one<V1PodDisruptionBudget>(
        'PodDisruptionBudget',
      );

    test('lets one Pod be away', async () => {
      const { apiVersion, metadata, spec } = await budgetOf({});
      assert.deepEqual([apiVersion, metadata?.name], ['policy/v1', fullname]);
      const matchLabels = { app: chartName, release: 'rel' };
      assert.deepEqual(spec, { maxUnavailable: 1, selector: { matchLabels } });
    });

    test('keeps a zero and a percentage', async () => {
      assert.equal((await budgetOf({ maxUnavailable: 0 })).spec?.maxUnavailable, 0);
      assert.equal((await budgetOf({ maxUnavailable: '50%' })).spec?.maxUnavailable, '50%');
      assert.equal((await budgetOf({ maxUnavailable: null })).spec?.maxUnavailable, 1);
    });

    test('has the version that an old cluster knows', async () => {
      assert.equal((await budgetOf({}, '1.20.0')).apiVersion, 'policy/v1beta1');
    });
  });

  describe('wrong values are refused by name', () => {
    for (const [path, values, words] of [
      ['replicaCount', { replicaCount: 'two' }, /'two' does not match/],
      ['strategyType', { strategyType: 'Rolling' }, /one of 'Recreate', 'RollingUpdate'/],
      ['image/pullPolicy', { image: { pullPolicy: 'never' } }, /one of 'Always', 'IfNotPresent', 'Never'/],
      ['imagePullSecrets/0', { imagePullSecrets: ['s'] }, /got string, want object/],
      ['nfs/server', { nfs: { server: 10.5 } }, /got number, want null or string/],
      ['nodeSelector', { nodeSelector: 'ssd' }, /got string, want object/],
      ['labels/a', { labels: { a: 5 } }, /got number, want string/],
      ['storageClass/reclaimPolicy', { storageClass: { reclaimPolicy: 'Keep' } }, /one of 'Delete', 'Retain'/],
      ['storageClass/volumeBindingMode', { storageClass: { volumeBindingMode: 'Late' } }, /one of 'Immediate'/],
      ['leaderElection/enabled', { leaderElection: { enabled: 'yes' } }, /one of true, false/],
      [
        'podDisruptionBudget/maxUnavailable',
        { podDisruptionBudget: { enabled: true, maxUnavailable: 'all' } },
        /'all' does not match/,
      ],
      ['http', { http: { enable: true } }, /additional properties 'enable' not allowed/],
      ['http/port', { http: { port: 0 } }, /got 0, want 1/],
      ['extraStorageClasses/0', { extraStorageClasses: [{ nam: 'c' }] }, /missing property 'name'/],
    ] as const) {
      test(path, async () => {
        const message = await refusal(values);
        assert.ok(message.includes(`'/${path}'`), message);
        assert.match(message, words);
      });
    }
  });

  test('passes lint, with the server and without', async () => {
    await helm.run(['lint', '--strict', chart], { nfs: share });
    await helm.run(['lint', '--strict', chart]);
  });
});
