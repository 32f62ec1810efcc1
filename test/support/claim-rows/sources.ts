/** Claims as sources, sources of other namespaces and of volume populators, Secrets and attributes classes. */
import type { Row, World } from './row.ts';

const fromClaim = (name = 'src'): object => ({ dataSource: { kind: 'PersistentVolumeClaim', name } });
const handedOver = (world: World): Promise<void> => world.handedOver();
const secretKey = 'csi.storage.k8s.io/provisioner-secret';

async function failed(world: World, message: string, { msAgo = 0 } = {}): Promise<void> {
  await world.handedOver();
  await world.addEvent({ kind: 'claim', name: 'c' }, { reason: 'ProvisioningFailed', message, msAgo });
}

async function gone(world: World): Promise<void> {
  const claim = { kind: 'claim', name: 'c' } as const;
  await world.remove(claim);
  await world.eventually(async () => {
    if ((await world.read(claim)) !== undefined) throw new Error('the claim is still there');
  });
}

async function recreate(world: World): Promise<void> {
  await gone(world);
  await world.addClaim();
}

const recreated = { cure: recreate, ends: 'bound' } as const;

export const sources: readonly Row[] = [
  {
    title: 'a clone of a claim that does not exist',
    async arrange(world) {
      await world.addClass();
      await world.addClaim(fromClaim('only-here'));
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-missing',
    says: /^PersistentVolumeClaim \S+\/only-here, the data source of the claim, does not exist\.$/,
    advises: /^Create the source/,
    cure: (world) => world.addClaim({}, { name: 'only-here' }),
    ends: 'bound',
  },
  {
    title: 'a clone of a claim whose class does not exist',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({ storageClassName: world.name('none') }, { name: 'src' });
      await world.addClaim(fromClaim());
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'class-not-found',
    says: /^It waits for its data source, claim src: StorageClass \S+-none does not exist/,
    advises: /^(Create the class|The cluster has)/,
    cure: (world) => world.addClass({ metadata: { name: world.name('none') } }),
    ends: 'bound',
  },
  {
    title: 'a clone of a clone of a claim that does not exist',
    async arrange(world) {
      await world.addClass();
      await world.addClaim(fromClaim('first'), { name: 'src' });
      await world.addClaim(fromClaim());
    },
    async recorded(world) {
      await world.handedOver();
      await world.handedOver('src');
    },
    verdict: 'stuck',
    cause: 'source-missing',
    says: /^It waits for its data source, claim src: PersistentVolumeClaim \S+\/first, /,
    advises: /^Create the source/,
    cure: (world) => world.addClaim({}, { name: 'first' }),
    ends: 'bound',
  },
  {
    title: 'a clone of a claim that is being deleted',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({}, { name: 'src', finalizers: ['example.com/last-rites'] });
      await world.bound('src');
      await world.remove({ kind: 'claim', name: 'src' });
      await world.addClaim(fromClaim());
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /src, the data source of the claim, is being deleted\.$/,
    advises: /^Recreate the claim with another source$/,
    async cure(world) {
      await recreate(world);
      await world.patch({ kind: 'claim', name: 'src' }, { metadata: { finalizers: null } });
    },
    ends: 'bound',
  },
  {
    title: 'a clone of a claim whose volume is of another driver',
    async arrange(world) {
      await world.addClass();
      const name = world.name('volume');
      await world.addVolume({ csi: { driver: 'other.example.com', volumeHandle: 'h' } }, { name });
      await world.addClaim({ volumeName: name }, { name: 'src' });
      if (world.level === 'recorded') {
        const { metadata } = (await world.read({ kind: 'claim', name: 'src' }))!;
        await world.patch({ kind: 'claim', name: 'src' }, { status: { phase: 'Bound' } });
        const claimRef = { namespace: world.namespace, name: 'src', uid: metadata.uid };
        await world.patch({ kind: 'volume', name }, { spec: { claimRef }, status: { phase: 'Bound' } });
      }
      await world.eventually(async () => {
        const { status } = (await world.read({ kind: 'claim', name: 'src' }))!;
        if (status?.['phase'] !== 'Bound') throw new Error('src is not bound');
      });
      await world.addClaim(fromClaim());
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /has a volume of driver other\.example\.com, and the claim is for driver \S+: no driver clones volumes of another\.$/,
    advises: /whose provisioner is other\.example\.com: kubectl get storageclass$/,
    ...recreated,
  },
  {
    title: 'a clone of a claim of another volume mode',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({ volumeMode: 'Block' }, { name: 'src' });
      await world.bound('src');
      await world.addClaim(fromClaim());
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /has volumeMode Block, and the claim requests Filesystem\.$/,
    advises: /^Recreate the claim with the volumeMode of its source/,
    ...recreated,
  },
  {
    title: 'a data source for a class of a plugin that is part of Kubernetes',
    async arrange(world) {
      await world.add('class', { metadata: { name: world.name() }, provisioner: 'kubernetes.io/host-path' });
      await world.addClaim(fromClaim());
    },
    cluster: { not: 'kube-controller-manager has no such plugin unless it is started for development' },
    async recorded(world) {
      const message =
        'plugin "kubernetes.io/host-path" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource';
      await world.addClaim({}, { name: 'src' });
      await world.bound('src');
      await world.patch(
        { kind: 'volume', name: `pvc-${(await world.read({ kind: 'claim', name: 'src' }))?.metadata.uid ?? ''}` },
        {},
      );
      await world.addEvent(
        { kind: 'claim', name: 'c' },
        { reason: 'ProvisioningFailed', message, component: 'persistentvolume-controller' },
      );
    },
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /no driver clones volumes of another|Only CSI plugin can provision/,
    advises: /^Recreate the claim with a StorageClass/,
  },
  {
    title: 'a source that a volume populator does not find',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({ dataSourceRef: { apiGroup: 'hello.example.com', kind: 'Hello', name: 'h' } });
      await world.addEvent(
        { kind: 'claim', name: 'c' },
        {
          reason: 'PopulatorDataSourceNotFound',
          message: `Data source ${world.namespace}/h not found`,
          component: 'hello-populator',
        },
      );
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-missing',
    says: /^Hello \S+\/h, the data source of the claim, does not exist: the volume populator does not find it\.$/,
    advises: /^Create the source: the populator goes on then/,
    ...recreated,
  },
  {
    title: 'a volume populator that fails',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({ dataSourceRef: { apiGroup: 'hello.example.com', kind: 'Hello', name: 'h' } });
      await world.addEvent(
        { kind: 'claim', name: 'c' },
        { reason: 'PopulatorFailed', message: 'Populator failed: exit code 1', component: 'hello-populator' },
      );
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /^The volume populator failed to fill the volume from Hello \S+\/h, .*exit code 1$/,
    advises: /^Do what it says, such as to correct Hello \S+\/h; .*: kubectl get pods,pvc -A \| grep prime-\S+$/,
    ...recreated,
  },
  {
    title: 'a volume populator with reasons of its own that fails',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({ dataSourceRef: { apiGroup: 'hello.example.com', kind: 'Hello', name: 'h' } });
      await world.addEvent(
        { kind: 'claim', name: 'c' },
        {
          reason: 'importFailed',
          message: 'Unable to process data: tls: failed to verify certificate: x509: unknown authority',
          type: 'Warning',
          component: 'import-populator',
        },
      );
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /^The volume populator failed to fill the volume from Hello \S+\/h, .*x509: unknown authority$/,
    advises: /^Do what it says, such as to correct Hello \S+\/h; .*: kubectl get pods,pvc -A \| grep prime-\S+$/,
    ...recreated,
  },
  {
    title: 'a volume populator that is at work',
    async arrange(world) {
      await world.addClass();
      const finalizers = ['hello.example.com/populate-target-protection'];
      await world.addClaim(
        { dataSourceRef: { apiGroup: 'hello.example.com', kind: 'Hello', name: 'h' } },
        { finalizers },
      );
    },
    recorded: handedOver,
    verdict: 'waiting',
    cause: 'source-not-ready',
    says: /^A volume populator has been filling the volume from Hello \S+\/h for \d+ s\.$/,
    advises: /^Nothing yet/,
    async cure(world) {
      await world.patch({ kind: 'claim', name: 'c' }, { metadata: { finalizers: null } });
      await recreate(world);
    },
    ends: 'bound',
  },
  {
    title: 'a kind of source for which no volume populator has done anything',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({ dataSourceRef: { apiGroup: 'hello.example.com', kind: 'Hello', name: 'h' } });
    },
    recorded: handedOver,
    verdict: 'waiting',
    cause: 'source-not-ready',
    says: /is a Hello, which needs a volume populator for this kind/,
    advises: /^Nothing yet/,
    ...recreated,
  },
  {
    title: 'a ReferenceGrant that differs in one field',
    async arrange(world) {
      const other = world.name('other');
      await world.add('namespace', { metadata: { name: other } });
      await world.add('grant', {
        metadata: { name: 'g', namespace: other },
        spec: {
          from: [{ group: '', kind: 'PersistentVolumeClaim', namespace: world.namespace }],
          to: [{ group: '', kind: 'VolumeSnapshot' }],
        },
      });
      await world.addClass();
      await world.addClaim({
        dataSourceRef: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's', namespace: other },
      });
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'grant-missing',
    says: /\. Of ReferenceGrant g spec\.to\[0\]\.group is "" and has to be "snapshot\.storage\.k8s\.io"\.$/,
    advises:
      /creates a ReferenceGrant there, such as: kubectl apply -f - <<< '\{"apiVersion":"gateway\.networking\.k8s\.io\/v1beta1"/,
    ...recreated,
  },
  {
    title: 'a ReferenceGrant in the namespace of the claim',
    async arrange(world) {
      const other = world.name('other');
      await world.add('namespace', { metadata: { name: other } });
      await world.add('grant', {
        metadata: { name: 'g' },
        spec: {
          from: [{ group: '', kind: 'PersistentVolumeClaim', namespace: world.namespace }],
          to: [{ group: '', kind: 'PersistentVolumeClaim' }],
        },
      });
      await world.addClass();
      await world.addClaim({ dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'src', namespace: other } });
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'grant-missing',
    says: /\. ReferenceGrant g would, but is in namespace \S+\.$/,
    advises: /^Who owns namespace \S+-other creates a ReferenceGrant there/,
    ...recreated,
  },
  {
    title: 'an attributes class that does not exist, and one of almost its name',
    needs: 'attributes classes',
    async arrange(world) {
      const parameters = { tier: 'gold' };
      await world.add('attributesClass', {
        metadata: { name: world.name('gold') },
        driverName: world.driver,
        parameters,
      });
      await world.addClass();
      await world.addClaim({ volumeAttributesClassName: world.name('glod') });
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'attributes-class',
    says: /^VolumeAttributesClass \S+-glod does not exist; \S+-gold does\.$/,
    advises:
      /^If \S+-gold is meant: kubectl patch pvc c -n \S+ --type=merge -p '\{"spec":\{"volumeAttributesClassName":"\S+-gold"\}\}'$/,
    ...recreated,
  },
  {
    title: 'an attributes class that the driver of a bound claim refuses',
    needs: 'attributes classes',
    async arrange(world) {
      await world.addClass();
      await world.addClaim();
      await world.bound();
      await world.patch({ kind: 'claim', name: 'c' }, { spec: { volumeAttributesClassName: world.name('gold') } });
      await world.patch(
        { kind: 'claim', name: 'c' },
        {
          status: {
            modifyVolumeStatus: { status: 'Infeasible', targetVolumeAttributesClassName: world.name('gold') },
            conditions: [
              {
                type: 'ModifyVolumeError',
                status: 'True',
                message: 'rpc error: code = InvalidArgument desc = unsupported volume type io3',
              },
            ],
          },
        },
      );
    },
    recorded: () => Promise.resolve(),
    verdict: 'bound',
    cause: 'bound',
    says: /whose driver cannot give it the attributes of \S+-gold: rpc error: .*volume type io3$/,
    advises: /^Name a class that the driver accepts$/,
  },
  {
    title: 'a data source that the API server has dropped',
    async arrange(world) {
      const applied = { spec: { dataSource: { apiGroup: 'hello.example.com', kind: 'Hello', name: 'h' } } };
      const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(applied) };
      await world.addClass();
      await world.addClaim({ dataSource: applied.spec.dataSource }, { annotations });
      if (world.level === 'recorded')
        await world.patch({ kind: 'claim', name: 'c' }, { spec: { dataSource: null, dataSourceRef: null } });
      await world.bound();
    },
    recorded: () => Promise.resolve(),
    verdict: 'bound',
    cause: 'bound',
    says: /which began empty: its manifest names the data source Hello h, and the API server has dropped that\.$/,
    advises: /^Recreate the claim with the source in spec\.dataSourceRef/,
  },
  {
    title: 'a Secret that does not exist',
    async arrange(world) {
      const [name, namespace] = ['no-such', world.namespace];
      await world.addClass({ parameters: { [`${secretKey}-name`]: name, [`${secretKey}-namespace`]: namespace } });
      await world.addClaim();
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'secret-missing',
    says: /no-such/,
    advises: /^Create the Secret/,
    cure: (world) => world.add('secret', { metadata: { name: 'no-such' } }),
    ends: 'bound',
  },
  {
    title: 'a Secret that came after the attempt that missed it',
    async arrange(world) {
      const parameters = { [`${secretKey}-name`]: 'key', [`${secretKey}-namespace`]: world.namespace };
      await world.addClass({ parameters });
      await world.addClaim();
    },
    cluster: { not: 'the next attempt comes within seconds there' },
    async recorded(world) {
      await failed(world, 'error getting secret key in namespace ns1: secrets "key" not found', { msAgo: 20_000 });
      await world.add('secret', { metadata: { name: 'key' } });
    },
    verdict: 'waiting',
    cause: 'in-progress',
    says: /^Secret ns1\/key exists, for \d s; the next attempt is due.*\. The last one, 2\d s ago, failed without it: error getting secret key /,
    advises: /^Nothing: the provisioner tries again by itself$/,
  },
  {
    title: 'a template of a Secret with an annotation that the claim does not have',
    async arrange(world) {
      await world.add('secret', { metadata: { name: 'key-red' } });
      const parameters = {
        [`${secretKey}-name`]: "key-${pvc.annotations['team']}",
        [`${secretKey}-namespace`]: world.namespace,
      };
      await world.addClass({ parameters });
      await world.addClaim();
    },
    recorded: (world) =>
      failed(
        world,
        `error resolving value "key-\${pvc.annotations['team']}": invalid tokens: ["pvc.annotations['team']"]`,
      ),
    verdict: 'stuck',
    cause: 'secret-missing',
    says: /Last error: .*invalid tokens: \["pvc\.annotations\['team'\]"\]$/,
    advises:
      /^The StorageClass makes the name of a Secret of the annotation team, which the claim does not have: kubectl annotate pvc c -n \S+ team=VALUE$/,
    cure: (world) => world.patch({ kind: 'claim', name: 'c' }, { metadata: { annotations: { team: 'red' } } }),
    ends: 'bound',
  },
];
