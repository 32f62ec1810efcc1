/** What the chart nfs-server-provisioner renders; for most values, exactly what the public chart of that name does. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type {
  V1ClusterRoleBinding,
  V1PriorityClass,
  V1Role,
  V1RoleBinding,
  V1Service,
  V1StatefulSet,
  V1StorageClass,
} from '@kubernetes/client-node';
import { parseFlags } from '../../../provisioners/nfs-server/flags.ts';
import { readSettings } from '../../../provisioners/nfs-server/settings.ts';
import { ChartObjects } from '../../support/helm/chart-objects.ts';
import { chartsFolder, HelmError, type Rendering, type Values } from '../../support/helm/helm.ts';
import { describeWithHelms, helmsForTests } from '../../support/helm/helm-for-tests.ts';

const chartName = 'nfs-server-provisioner';
const chart = `${chartsFolder}/${chartName}`;
const fullname = `rel-${chartName}`;

/** Name, value and number of what the server listens on. */
const ports = [
  ['nfs', 'nfs', 2049],
  ['nlockmgr', 'nlockmgr', 32_803],
  ['mountd', 'mountd', 20_048],
  ['rquotad', 'rquotad', 875],
  ['rpcbind', 'rpcbind', 111],
  ['statd', 'statd', 662],
] as const;
const named = ports.flatMap(([name, , number]) => [
  { name, number, protocol: 'TCP' },
  { name: `${name}-udp`, number, protocol: 'UDP' },
]);

describeWithHelms(await helmsForTests(), 'the chart nfs-server-provisioner', (helm) => {
  const render = async (values: Values = {}, options: Partial<Rendering> = {}): Promise<ChartObjects> =>
    new ChartObjects(await helm.template({ chart, values, ...options }));
  const refusal = async (values: Values, options: Partial<Rendering> = {}): Promise<string> => {
    const error = await render(values, options).then(
      () => assert.fail('it renders'),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof HelmError, String(error));
    return error.message;
  };
  const setOf = async (values: Values): Promise<V1StatefulSet> =>
    (await render(values)).one<V1StatefulSet>('StatefulSet');

  describe('objects and names', () => {
    const namesOf = (full: string): string[] =>
      [
        ...['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding', 'Service', 'ServiceAccount', 'StatefulSet'].map(
          (kind) => `${kind} ${full}`,
        ),
        'StorageClass nfs',
      ].sort();

    test('are those of the original by default, and a Role in the own namespace', async () => {
      assert.deepEqual((await render()).names, namesOf(fullname));
    });

    test('have the name of a release that contains that of the chart', async () => {
      const release = `my-${chartName}`;
      assert.deepEqual((await render({}, { release })).names, namesOf(release));
    });

    test('follow fullnameOverride, and the label app follows nameOverride', async () => {
      const objects = await render({ fullnameOverride: 'home', nameOverride: 'nfs' });
      assert.deepEqual(objects.names, namesOf('home'));
      const { spec } = objects.one<V1StatefulSet>('StatefulSet');
      assert.deepEqual(spec?.selector.matchLabels, { app: 'nfs', release: 'rel' });
      assert.equal(spec.serviceName, 'home');
      assert.equal(objects.one<V1StorageClass>('StorageClass').provisioner, 'cluster.local/home');
      assert.equal(objects.container.name, chartName);
    });

    test('are refused where they are too long for Pods of a StatefulSet', async () => {
      assert.match(await refusal({}, { release: 'a'.repeat(40) }), /is too long: .*set fullnameOverride/);
      const longest = 'a'.repeat(52 - chartName.length - 1);
      await render({}, { release: longest });
      await refusal({}, { release: `${longest}a` });
    });

    test('are in another namespace with namespaceOverride, but for those of the cluster', async () => {
      const objects = await render({ namespaceOverride: 'other' });
      const inNamespace = objects.all.filter(({ metadata }) => metadata?.namespace === 'other').map(({ kind }) => kind);
      assert.deepEqual(inNamespace.sort(), ['Role', 'RoleBinding', 'Service', 'ServiceAccount', 'StatefulSet']);
      for (const kind of ['ClusterRoleBinding', 'RoleBinding']) {
        assert.equal(objects.one<V1RoleBinding>(kind).subjects?.[0]?.namespace, 'other');
      }
      assert.deepEqual(
        (await render()).all.filter(({ metadata }) => metadata?.namespace !== undefined),
        [],
      );
    });
  });

  describe('labels', () => {
    const selector = { app: chartName, release: 'rel' };

    test('are four on Pods, and two in selectors', async () => {
      const objects = await render();
      const { metadata, spec } = objects.one<V1StatefulSet>('StatefulSet');
      assert.deepEqual(spec?.selector.matchLabels, selector);
      assert.deepEqual(objects.one<V1Service>('Service').spec?.selector, selector);
      const { chart: ours, ...labels } = spec.template.metadata?.labels ?? {};
      assert.deepEqual(labels, { ...selector, heritage: 'Helm' });
      assert.match(ours ?? '', /^nfs-server-provisioner-\d+\.\d+\.\d+$/);
      assert.equal(metadata?.labels?.['chart'], ours);
    });

    test('of the user are on objects and Pods, in no selector and no claim template', async () => {
      const objects = await render({
        labels: { team: 'x', app: 'mine' },
        podLabels: { tier: 'y' },
        persistence: { enabled: true },
      });
      for (const { metadata } of objects.all) {
        assert.equal(metadata?.labels?.['team'], 'x');
        assert.equal(metadata.labels['app'], chartName);
      }
      const { spec } = objects.one<V1StatefulSet>('StatefulSet');
      assert.deepEqual(spec?.selector.matchLabels, selector);
      assert.partialDeepStrictEqual(spec.template.metadata?.labels, { team: 'x', tier: 'y' });
      assert.equal(spec.volumeClaimTemplates?.[0]?.metadata?.labels, undefined);
    });
  });

  describe('the Service', () => {
    const serviceOf = async (service: Values): Promise<V1Service> =>
      (await render({ service })).one<V1Service>('Service');

    test('has twelve ports, which lead to those of the container', async () => {
      const objects = await render();
      const { spec } = objects.one<V1Service>('Service');
      assert.equal(spec?.type, 'ClusterIP');
      assert.deepEqual(
        spec.ports,
        named.map(({ name, number, protocol }) => ({ name, port: number, targetPort: name, protocol })),
      );
      assert.deepEqual(
        objects.container.ports,
        named.map(({ name, number, protocol }) => ({ name, containerPort: number, protocol })),
      );
      assert.equal(spec.clusterIP, undefined);
    });

    test('may have other ports, while the container keeps its own', async () => {
      const objects = await render({ service: { nfsPort: 1 } });
      const [tcp, udp] = objects.one<V1Service>('Service').spec?.ports ?? [];
      assert.deepEqual([tcp?.port, udp?.port], [1, 1]);
      assert.deepEqual(objects.container.ports, (await render()).container.ports);
    });

    test('has the given node ports, for TCP and UDP alike', async () => {
      const numbers = Object.fromEntries(ports.map(([, value], index) => [`${value}NodePort`, 30_001 + index]));
      const { spec } = await serviceOf({ type: 'NodePort', ...numbers });
      assert.deepEqual(
        spec?.ports?.map(({ nodePort }) => nodePort),
        ports.flatMap((_, index) => [30_001 + index, 30_001 + index]),
      );
    });

    test('leaves node ports that are not given to the API server', async () => {
      const { spec } = await serviceOf({ type: 'NodePort', nfsNodePort: 30_001 });
      const without = spec?.ports?.filter((port) => !('nodePort' in port)).map(({ name }) => name);
      assert.deepEqual(without, named.map(({ name }) => name).slice(2));
    });

    test('of another type has no node ports, but the addresses as given', async () => {
      const given = { type: 'LoadBalancer', clusterIP: '10.96.0.9', externalIPs: ['192.0.2.1'] };
      const { spec } = await serviceOf({ ...given, nfsNodePort: 30_001 });
      assert.partialDeepStrictEqual(spec, given);
      assert.deepEqual(
        spec?.ports?.filter((port) => 'nodePort' in port),
        [],
      );
    });
  });

  describe('the StatefulSet', () => {
    test('runs the program with its name, its Service and its address', async () => {
      const { container, pod } = await render();
      assert.deepEqual(container.args, [`-provisioner=cluster.local/${fullname}`]);
      assert.deepEqual(container.env, [
        { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
        { name: 'SERVICE_NAME', value: fullname },
        { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
      ]);
      assert.deepEqual(container.volumeMounts, [{ name: 'data', mountPath: '/export' }]);
      assert.equal(pod.terminationGracePeriodSeconds, 100);
      for (const field of ['command', 'livenessProbe', 'readinessProbe', 'resources'] as const) {
        assert.equal(container[field], undefined, field);
      }
      assert.equal(pod.securityContext, undefined);
    });

    test('has arguments that the program accepts, and mounts what it exports', async () => {
      const extraArgs = { 'grace-period': 0, 'device-based-fsids': false, 'leader-elect': true, v: 4 };
      const values = {
        extraArgs,
        http: { enabled: true },
        nfsv4Only: true,
        storageClass: { mountOptions: ['vers=4.1'] },
      };
      const { container } = await render(values);
      const flags = parseFlags(container.args ?? []);
      assert.ok(flags);
      const settings = readSettings(flags, {});
      assert.partialDeepStrictEqual(settings, {
        provisionerName: `cluster.local/${fullname}`,
        gracePeriodS: 0,
        deviceBasedFsids: false,
        leaderElect: true,
        nfsV3: false,
        httpEndpoint: ':8080',
        verbosity: 4,
      });
      assert.equal(settings.paths.exportDirectory, container.volumeMounts?.[0]?.mountPath);
    });

    test('has further arguments sorted, behind the name', async () => {
      const { container } = await render({ extraArgs: { 'grace-period': 0, 'device-based-fsids': false } });
      assert.deepEqual(container.args?.slice(1), ['-device-based-fsids=false', '-grace-period=0']);
    });

    test('has large numbers as they were given', async () => {
      const { container } = await render({ extraArgs: { 'max-exports': 1_000_000 } });
      assert.equal(container.args?.[1], '-max-exports=1000000');
    });

    test('adds capabilities, which others are merged with and null removes', async () => {
      const capabilities = { add: ['DAC_READ_SEARCH', 'SYS_RESOURCE'] };
      assert.deepEqual((await render()).container.securityContext, { capabilities });
      const merged = await render({ securityContext: { privileged: true } });
      assert.deepEqual(merged.container.securityContext, { privileged: true, capabilities });
      assert.equal((await render({ securityContext: null })).container.securityContext, undefined);
    });

    test('has placement, resources, pull secrets and replicas as given', async () => {
      const fields = {
        nodeSelector: { disk: 'ssd' },
        tolerations: [{ key: 'a', operator: 'Exists' }],
        affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
        imagePullSecrets: [{ name: 's' }],
        terminationGracePeriodSeconds: 30,
      };
      const resources = { limits: { memory: '64Mi' } };
      const objects = await render({ ...fields, resources, replicaCount: 2, podSecurityContext: { fsGroup: 1 } });
      assert.partialDeepStrictEqual(objects.pod, { ...fields, securityContext: { fsGroup: 1 } });
      assert.deepEqual(objects.container.resources, resources);
      assert.equal(objects.one<V1StatefulSet>('StatefulSet').spec?.replicas, 2);
    });

    test('takes the digest of an image before its tag', async () => {
      const { container } = await render({ image: { repository: 'r/i', tag: 't', digest: 'sha256:0' } });
      assert.equal(container.image, 'r/i@sha256:0');
      const tagged = await render({ image: { repository: 'r/i', tag: 't', pullPolicy: 'Always' } });
      assert.equal(tagged.container.image, 'r/i:t');
      assert.equal(tagged.container.imagePullPolicy, 'Always');
    });

    test('serves metrics and probes where http is enabled, readiness for clients of NFS', async () => {
      const { container } = await render({ http: { enabled: true, port: 9090 } });
      assert.equal(container.args?.at(-1), '-http-endpoint=:9090');
      assert.deepEqual(container.ports?.at(-1), { name: 'http', containerPort: 9090 });
      assert.equal(container.ports.length, named.length + 1);
      assert.deepEqual(container.livenessProbe?.httpGet, { path: '/healthz', port: 'http' });
      assert.deepEqual(container.readinessProbe?.tcpSocket, { port: 'nfs' });
      assert.match(await refusal({ http: { enabled: true }, extraArgs: { 'http-endpoint': ':1' } }), /are the same/);
    });

    test('has annotations of its own and of Pods, further variables, volumes and mounts', async () => {
      const objects = await render({
        annotations: { a: 'set' },
        podAnnotations: { a: 'pod' },
        persistence: { enabled: true },
        extraEnv: [{ name: 'A', value: 'b' }],
        extraVolumes: [{ name: 'x', emptyDir: {} }],
        extraVolumeMounts: [{ name: 'x', mountPath: '/x' }],
      });
      const { metadata, spec } = objects.one<V1StatefulSet>('StatefulSet');
      assert.deepEqual(metadata?.annotations, { a: 'set' });
      assert.deepEqual(spec?.template.metadata?.annotations, { a: 'pod' });
      assert.deepEqual(objects.container.env?.at(-1), { name: 'A', value: 'b' });
      assert.deepEqual(objects.pod.volumes, [{ name: 'x', emptyDir: {} }]);
      assert.deepEqual(objects.container.volumeMounts?.at(-1), { name: 'x', mountPath: '/x' });
    });
  });

  describe('the data', () => {
    test('is in an empty folder without persistence, also where a claim is named', async () => {
      const objects = await render({ persistence: { existingClaim: 'c' } });
      assert.deepEqual(objects.pod.volumes, [{ name: 'data', emptyDir: {} }]);
      assert.equal(objects.one<V1StatefulSet>('StatefulSet').spec?.volumeClaimTemplates, undefined);
    });

    test('is in a claim of the StatefulSet with persistence', async () => {
      const { spec } = await setOf({ persistence: { enabled: true } });
      assert.deepEqual(spec?.volumeClaimTemplates, [
        {
          metadata: { name: 'data' },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
        },
      ]);
      assert.equal(spec.template.spec?.volumes, undefined);
    });

    test('has class, access mode and size as given', async () => {
      const given = { storageClass: 'std', accessMode: 'ReadWriteMany', size: '2Gi' };
      const { spec } = await setOf({ persistence: { enabled: true, ...given } });
      assert.deepEqual(spec?.volumeClaimTemplates?.[0]?.spec, {
        accessModes: ['ReadWriteMany'],
        storageClassName: 'std',
        resources: { requests: { storage: '2Gi' } },
      });
    });

    test('has the class with the empty name for a dash', async () => {
      const { spec } = await setOf({ persistence: { enabled: true, storageClass: '-' } });
      assert.equal(spec?.volumeClaimTemplates?.[0]?.spec?.storageClassName, '');
    });

    test('is in a claim that exists, whose name may be a template', async () => {
      const objects = await render({ persistence: { enabled: true, existingClaim: '{{ .Release.Name }}-data' } });
      assert.deepEqual(objects.pod.volumes, [{ name: 'data', persistentVolumeClaim: { claimName: 'rel-data' } }]);
      assert.equal(objects.one<V1StatefulSet>('StatefulSet').spec?.volumeClaimTemplates, undefined);
    });
  });

  describe('the StorageClass', () => {
    const classOf = async (storageClass: Values): Promise<V1StorageClass> =>
      (await render({ storageClass })).one<V1StorageClass>('StorageClass');

    test('mounts with NFS version 3 and can be expanded by default', async () => {
      const { metadata, ...fields } = await classOf({});
      assert.equal(metadata?.name, 'nfs');
      assert.equal(metadata.annotations, undefined);
      assert.deepEqual(fields, {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        provisioner: `cluster.local/${fullname}`,
        reclaimPolicy: 'Delete',
        allowVolumeExpansion: true,
        mountOptions: ['vers=3', 'retrans=2', 'timeo=30'],
      });
    });

    test('has all fields as given, and the program its provisioner', async () => {
      const objects = await render({
        storageClass: {
          name: 'c',
          defaultClass: true,
          provisionerName: 'x/y',
          reclaimPolicy: 'Retain',
          parameters: { gid: 5, rootSquash: true },
          mountOptions: ['vers=4.1'],
          annotations: { a: 'b' },
        },
      });
      assert.partialDeepStrictEqual(objects.one<V1StorageClass>('StorageClass'), {
        metadata: {
          name: 'c',
          annotations: { 'storageclass.kubernetes.io/is-default-class': 'true', a: 'b' },
        },
        provisioner: 'x/y',
        reclaimPolicy: 'Retain',
        parameters: { gid: '5', rootSquash: 'true' },
        mountOptions: ['vers=4.1'],
      });
      assert.equal(objects.container.args?.[0], '-provisioner=x/y');
    });

    test('omits what is false or empty', async () => {
      for (const allowVolumeExpansion of [false, null]) {
        const storageClass = await classOf({ allowVolumeExpansion, mountOptions: [] });
        assert.equal(storageClass.allowVolumeExpansion, undefined);
        assert.equal(storageClass.mountOptions, undefined);
        assert.equal(storageClass.parameters, undefined);
      }
    });

    test('can be left out', async () => {
      const objects = await render({ storageClass: { create: false } });
      assert.ok(!objects.has('StorageClass'));
      assert.deepEqual(objects.container.args, [`-provisioner=cluster.local/${fullname}`]);
    });
  });

  describe('with NFS version 4 alone', () => {
    const storageClass = { mountOptions: ['vers=4.1'] };

    test('has one port, which the program is content with', async () => {
      const objects = await render({ nfsv4Only: true, storageClass });
      assert.deepEqual(objects.one<V1Service>('Service').spec?.ports, [
        { name: 'nfs', port: 2049, targetPort: 'nfs', protocol: 'TCP' },
      ]);
      assert.deepEqual(objects.container.ports, [{ name: 'nfs', containerPort: 2049, protocol: 'TCP' }]);
      assert.equal(objects.container.args?.[1], '-nfsv3=false');
    });

    test('refuses mount options of version 3, and the flag as well', async () => {
      assert.match(await refusal({ nfsv4Only: true }), /other storageClass\.mountOptions.*"vers=3"/);
      const twice = { nfsv4Only: true, storageClass, extraArgs: { nfsv3: false } };
      assert.match(await refusal(twice), /nfsv4Only and extraArgs\.nfsv3 are the same/);
      await render({ nfsv4Only: true, storageClass: { create: false } });
    });
  });

  describe('rights', () => {
    test('can be left out with the account, in whose place is the given one', async () => {
      const { names, pod } = await render({ rbac: { create: false } });
      assert.deepEqual(names, [`Service ${fullname}`, `StatefulSet ${fullname}`, 'StorageClass nfs']);
      assert.equal(pod.serviceAccountName, 'default');
      const given = await render({ rbac: { create: false, serviceAccountName: 's' } });
      assert.equal(given.pod.serviceAccountName, 's');
      const ignored = await render({ rbac: { serviceAccountName: 's' } });
      assert.equal(ignored.pod.serviceAccountName, fullname);
    });

    test('are bound to the account, those on Leases in its namespace alone', async () => {
      const objects = await render();
      const subjects = [{ kind: 'ServiceAccount', name: fullname, namespace: 'storage' }];
      for (const kind of ['Role', 'ClusterRole'] as const) {
        const binding = objects.one<V1ClusterRoleBinding>(`${kind}Binding`);
        assert.deepEqual(binding.subjects, subjects);
        assert.deepEqual([binding.roleRef.kind, binding.roleRef.name], [kind, fullname]);
      }
      const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] };
      assert.deepEqual(objects.one<V1Role>('Role').rules?.[1], leases);
      const cluster = objects.one<V1Role>('ClusterRole').rules ?? [];
      assert.ok(!cluster.some(({ resources }) => resources?.includes('leases')));
    });
  });

  describe('the priority class', () => {
    test('is created with the given value', async () => {
      const objects = await render({ priorityClass: { create: true, value: 1_000_000 } });
      const { metadata, ...fields } = objects.one<V1PriorityClass>('PriorityClass');
      assert.equal(metadata?.name, fullname);
      assert.partialDeepStrictEqual(fields, { value: 1_000_000, globalDefault: false });
      assert.equal(objects.pod.priorityClassName, fullname);
    });

    test('is only named where it is not created', async () => {
      const objects = await render({ priorityClass: { name: 'p' } });
      assert.ok(!objects.has('PriorityClass'));
      assert.equal(objects.pod.priorityClassName, 'p');
      assert.equal((await render()).pod.priorityClassName, undefined);
    });
  });

  describe('wrong values are refused by name', () => {
    for (const [path, values, words] of [
      ['replicaCount', { replicaCount: 'two' }, /'two' does not match/],
      ['extraArgs', { extraArgs: ['-v=4'] }, /got array, want object/],
      ['service/type', { service: { type: 'Cluster' } }, /one of 'ClusterIP', 'NodePort', 'LoadBalancer'/],
      ['service/nfsPort', { service: { nfsPort: 'nfs' } }, /'nfs' does not match/],
      ['service/externalIPs', { service: { externalIPs: '192.0.2.1' } }, /got string, want array/],
      ['persistence/accessMode', { persistence: { enabled: true, accessMode: 'RWO' } }, /one of 'ReadWriteOnce'/],
      ['persistence/size', { persistence: { enabled: true, size: '1 GB' } }, /'1 GB' does not match/],
      ['storageClass/mountOptions', { storageClass: { mountOptions: 'vers=3' } }, /got string, want array/],
      ['storageClass/reclaimPolicy', { storageClass: { reclaimPolicy: 'Keep' } }, /one of 'Delete', 'Retain'/],
      ['priorityClass/value', { priorityClass: { create: true, value: 'high' } }, /'high' does not match/],
      ['nfsv4Only', { nfsv4Only: 'yes' }, /got string, want null or boolean/],
      ['podLabels/a', { podLabels: { a: 5 } }, /got number, want string/],
      ['extraEnv/0', { extraEnv: [{ value: 'x' }] }, /missing property 'name'/],
    ] as const) {
      test(path, async () => {
        const message = await refusal(values);
        assert.ok(message.includes(`'/${path}'`), message);
        assert.match(message, words);
      });
    }

    test('of what is not used are accepted, as before', async () => {
      await render({
        persistence: { accessMode: 'RWO', size: '1 GB' },
        storageClass: { create: false, mountOptions: 'x', reclaimPolicy: 'Keep' },
        priorityClass: { value: 'high' },
      });
    });
  });

  test('passes lint', async () => {
    await helm.run(['lint', '--strict', chart]);
  });
});
