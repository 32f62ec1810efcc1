/** Claims and Pods that nobody has created: quota, admission, owners, and names that are nearly right. */
import assert from 'node:assert/strict';
import type { Row, World } from './row.ts';

const late = { volumeBindingMode: 'WaitForFirstConsumer' };
const nothing = (): Promise<void> => Promise.resolve();
const set = { kind: 'statefulSet', name: 'web' } as const;
const deployment = { kind: 'deployment', name: 'web' } as const;
const quota = { kind: 'quota', name: 'q' } as const;
const claimOfSet = 'data-web-0';
const labels = { app: 'web' };
/** Of StatefulSets, ReplicaSets and the controller of ephemeral volumes. */
const [ofSets, ofReplicaSets, ofEphemerals] = ['statefulset-controller', 'replicaset-controller', 'ephemeral_volume'];

/** A Pod template that uses the claim; the node is that of the row. */
const podOf = (world: World, claimName: string | undefined, spec: object = {}): object => ({
  metadata: { labels },
  spec: {
    containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
    ...onNode(world),
    ...(claimName !== undefined && { volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] }),
    ...spec,
  },
});

const onNode = (world: World): { nodeSelector: Record<string, string> } => ({
  nodeSelector: { 'kubernetes.io/hostname': world.name('node') },
});

/** What a kubelet would write of Pod `web-0`. */
async function running(world: World, ready: 'True' | 'False'): Promise<void> {
  const pod = { kind: 'pod', name: 'web-0' } as const;
  if (world.level === 'cluster' || (await world.read(pod))?.spec?.['nodeName'] === undefined) {
    await world.eventually(async () => assert.ok((await world.read(pod)) !== undefined));
    await world.placed('web-0');
  }
  const conditions = [
    { type: 'PodScheduled', status: 'True' },
    { type: 'Ready', status: ready },
  ];
  await world.patch(pod, { status: { phase: 'Running', conditions } });
}

interface SetOptions {
  replicas?: number;
  storageClassName?: string;
  storage?: string;
  podSpec?: object;
  policy?: 'Parallel' | 'OrderedReady';
}

/** StatefulSet `web` with the template `data` of claims. */
async function addSet(world: World, options: SetOptions = {}): Promise<void> {
  const { replicas = 1, storageClassName = world.name(), storage = '1Gi', podSpec, policy = 'Parallel' } = options;
  await world.add('statefulSet', {
    metadata: { name: 'web' },
    spec: {
      replicas,
      serviceName: 'web',
      podManagementPolicy: policy,
      selector: { matchLabels: labels },
      template: podOf(world, undefined, podSpec),
      volumeClaimTemplates: [
        {
          metadata: { name: 'data' },
          spec: { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
        },
      ],
    },
  });
}

async function addDeployment(world: World, podSpec: object = {}, replicas = 1): Promise<void> {
  await world.add('deployment', {
    metadata: { name: 'web' },
    spec: { replicas, selector: { matchLabels: labels }, template: podOf(world, 'c', podSpec) },
  });
}

/** Of a recorded set: the ReplicaSet of the Deployment, as its controller makes it. */
async function addReplicaSet(world: World, podSpec: object = {}, status: object = {}): Promise<void> {
  const { uid } = (await world.read(deployment))?.metadata ?? {};
  const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid, controller: true };
  await world.add('replicaSet', {
    metadata: { name: 'web-1', labels, ownerReferences: [owner] },
    spec: { replicas: 1, selector: { matchLabels: labels }, template: podOf(world, 'c', podSpec) },
    status: { replicas: 0, ...status },
  });
}

const setRefused = async (world: World, said: string, claim = claimOfSet): Promise<void> => {
  const pod = `web-${claim.split('-').at(-1) ?? ''}`;
  const both = { reason: 'FailedCreate', component: ofSets, msAgo: 40_000, count: 7 };
  const message = `Claim ${claim} for Pod ${pod} in StatefulSet web failed error: ${said}`;
  await world.addEvent(set, { ...both, message: `Create ${message}` });
  const ofPod = `create Pod ${pod} in StatefulSet web failed error: failed to create PVC ${claim}: ${said}`;
  await world.addEvent(set, { ...both, message: ofPod });
};

const podOfSetRefused = (world: World, said: string, pod = 'web-0'): Promise<void> =>
  world.addEvent(set, {
    ...{ reason: 'FailedCreate', component: ofSets },
    message: `create Pod ${pod} in StatefulSet web failed error: pods "${pod}" is forbidden: ${said}`,
  });

const replicaRefused = async (world: World, said: string, podSpec: object = {}): Promise<void> => {
  await addReplicaSet(world, podSpec);
  await world.addEvent(
    { kind: 'replicaSet', name: 'web-1' },
    {
      reason: 'FailedCreate',
      component: ofReplicaSets,
      message: `Error creating: pods "web-1-" is forbidden: ${said}`,
    },
  );
};

/** What the controller of the quota would have counted. */
const addQuota = (world: World, hard: Record<string, string>): Promise<unknown> =>
  world.add('quota', {
    metadata: { name: 'q' },
    spec: { hard },
    status: { hard, used: Object.fromEntries(Object.keys(hard).map((key) => [key, '0'])) },
  });

const raiseQuota = (world: World, hard: Record<string, string>): Promise<void> =>
  world.patch(quota, { spec: { hard }, status: { hard } });

/** Any change of the owner has its controller try at once. */
const tryAgain = (world: World): Promise<void> => world.patch(set, { metadata: { annotations: { again: '1' } } });
const rollOut = (world: World): Promise<void> =>
  world.patch(deployment, { spec: { template: { metadata: { annotations: { again: '1' } } } } });

const forNamespace = (world: World): object => ({
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } },
});

/** The API server learns of a policy or webhook a moment after it was created. */
async function refusesClaims(world: World): Promise<void> {
  let probes = 0;
  await world.eventually(async () => {
    const name = `probe-${++probes}`; // one that is still being deleted would refuse the next of its name
    const created = await world.addClaim({}, { name }).then(
      () => true,
      () => false,
    );
    if (!created) return;
    await world.remove({ kind: 'claim', name });
    throw new Error('claims are still accepted');
  });
}

const claimRule = {
  apiGroups: [''],
  apiVersions: ['v1'],
  operations: ['CREATE'],
  resources: ['persistentvolumeclaims'],
};

/** Claims need a label. */
async function denyClaims(world: World): Promise<void> {
  const needsLabel = { expression: '"team" in object.metadata.?labels.orValue({})', message: 'label team is missing' };
  await world.add('policy', {
    metadata: { name: world.name() },
    spec: {
      matchConstraints: { resourceRules: [claimRule], ...forNamespace(world) },
      validations: [needsLabel],
    },
  });
  const spec = { policyName: world.name(), validationActions: ['Deny'] };
  await world.add('policyBinding', { metadata: { name: world.name() }, spec });
  await refusesClaims(world);
}

/** A webhook for claims that does not respond. */
async function failClaims(world: World): Promise<void> {
  const webhook = {
    name: 'claims.example.com',
    clientConfig: { url: 'https://127.0.0.1:1/' },
    ...{ admissionReviewVersions: ['v1'], sideEffects: 'None', rules: [claimRule] },
    ...forNamespace(world),
  };
  await world.add('webhook', { metadata: { name: world.name() }, webhooks: [webhook] });
  await refusesClaims(world);
}

export const neverMade: readonly Row[] = [
  {
    title: 'a claim that nobody has created',
    object: 'uncreated',
    arrange: nothing,
    recorded: nothing,
    verdict: 'unknown',
    cause: 'not-found',
    says: /^There is no claim \S+\/uncreated\.$/,
    advises: /^List the claims: kubectl get pvc --namespace \S+$/,
    async cure(world) {
      await world.addClass();
      await world.addClaim({}, { name: 'uncreated' });
    },
    ends: 'bound',
  },
  {
    title: 'a StatefulSet whose claim a quota of claims refuses',
    object: claimOfSet,
    async arrange(world) {
      await world.addClass();
      await addQuota(world, { persistentvolumeclaims: '0' });
      await addSet(world);
    },
    recorded: (world) =>
      setRefused(
        world,
        'persistentvolumeclaims "data-web-0" is forbidden: exceeded quota: q, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0',
      ),
    verdict: 'stuck',
    cause: 'rejected',
    says: /^StatefulSet web cannot create claim data-web-0: it failed .* ago\. The API server: persistentvolumeclaims "data-web-0" is forbidden: exceeded quota: q, requested: /,
    advises:
      /^Raise ResourceQuota q, or delete what counts against it: kubectl patch resourcequota q -n \S+ --type=merge -p '\{"spec":\{"hard":\{"persistentvolumeclaims":"1"\}\}\}'$/,
    async cure(world) {
      await raiseQuota(world, { persistentvolumeclaims: '1' });
      await tryAgain(world);
    },
    ends: 'bound',
  },
  {
    title: 'a StatefulSet whose claim a quota of storage of its class refuses',
    object: claimOfSet,
    async arrange(world) {
      await world.addClass();
      await addQuota(world, { [`${world.name()}.storageclass.storage.k8s.io/requests.storage`]: '1Gi' });
      await addSet(world, { storage: '2Gi' });
    },
    recorded: (world) => {
      const key = `${world.name()}.storageclass.storage.k8s.io/requests.storage`;
      return setRefused(
        world,
        `persistentvolumeclaims "data-web-0" is forbidden: exceeded quota: q, requested: ${key}=2Gi, used: ${key}=0, limited: ${key}=1Gi`,
      );
    },
    verdict: 'stuck',
    cause: 'rejected',
    says: /requests\.storage=2Gi, used: \S+=0, limited: \S+=1Gi/,
    advises: /: kubectl patch resourcequota q .*storageclass\.storage\.k8s\.io\/requests\.storage":"2Gi"/,
    async cure(world) {
      await raiseQuota(world, { [`${world.name()}.storageclass.storage.k8s.io/requests.storage`]: '2Gi' });
      await tryAgain(world);
    },
    ends: 'bound',
  },
  {
    title: 'a StatefulSet whose claim was refused by a quota that has room now',
    object: claimOfSet,
    async arrange(world) {
      await world.addClass();
      await addQuota(world, { persistentvolumeclaims: '5' });
      await addSet(world);
    },
    recorded: (world) =>
      setRefused(
        world,
        'persistentvolumeclaims "data-web-0" is forbidden: exceeded quota: q, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0',
      ),
    cluster: { not: 'its controller tries again within seconds' },
    verdict: 'waiting',
    cause: 'rejected',
    says: /^StatefulSet web has not yet created claim data-web-0, and now ResourceQuota q has room for it: the next attempt comes within 1[56] min\. Before that it failed 7 times/,
    advises:
      /^Nothing, or have it tried at once: kubectl annotate statefulset\/web -n \S+ csi-provisioner\/retry=\d+ --overwrite$/,
  },
  {
    title: 'a StatefulSet whose claim is smaller than a LimitRange allows',
    object: claimOfSet,
    async arrange(world) {
      await world.addClass();
      const limits = [{ type: 'PersistentVolumeClaim', min: { storage: '5Gi' } }];
      await world.add('limits', { metadata: { name: 'l' }, spec: { limits } });
      await addSet(world);
    },
    recorded: (world) =>
      setRefused(
        world,
        'persistentvolumeclaims "data-web-0" is forbidden: minimum storage usage per PersistentVolumeClaim is 5Gi, but request is 1Gi',
      ),
    verdict: 'stuck',
    cause: 'rejected',
    says: /minimum storage usage per PersistentVolumeClaim is 5Gi, but request is 1Gi$/,
    advises:
      /^Request a size within the LimitRange .* cannot be changed: .*: kubectl delete statefulset\/web -n \S+ --cascade=orphan$/,
    async cure(world) {
      await world.remove({ kind: 'limits', name: 'l' });
      await tryAgain(world);
    },
    ends: 'bound',
  },
  {
    title: 'a StatefulSet whose template names a class in capitals',
    object: claimOfSet,
    async arrange(world) {
      await world.addClass();
      await addSet(world, { storageClassName: 'Fast' });
    },
    recorded: (world) =>
      setRefused(
        world,
        'PersistentVolumeClaim "data-web-0" is invalid: spec.storageClassName: Invalid value: "Fast": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters',
      ),
    verdict: 'stuck',
    cause: 'rejected',
    says: /is invalid: spec\.storageClassName: Invalid value: "Fast"/,
    advises:
      /^Correct the field that the message names\. The volumeClaimTemplates of statefulset\/web cannot be changed: .*: kubectl delete statefulset\/web -n \S+ --cascade=orphan$/,
    cluster: { not: 'Kubernetes 1.36 refuses such a StatefulSet' },
  },
  {
    title: 'a StatefulSet whose claim a ValidatingAdmissionPolicy denies',
    object: claimOfSet,
    async arrange(world) {
      await world.addClass();
      if (world.level === 'cluster') await denyClaims(world);
      await addSet(world);
    },
    recorded: (world) =>
      setRefused(
        world,
        `persistentvolumeclaims "data-web-0" is forbidden: ValidatingAdmissionPolicy '${world.name()}' with binding '${world.name()}' denied request: label team is missing`,
      ),
    verdict: 'stuck',
    cause: 'rejected',
    says: /denied request: label team is missing$/,
    advises: /^Do what the policy asks for, .*: kubectl get validatingadmissionpolicy \S+ -o yaml$/,
    async cure(world) {
      await world.remove({ kind: 'policyBinding', name: world.name() });
      await world.eventually(() => world.addClaim({}, { name: 'probe' }));
      await tryAgain(world);
    },
    ends: 'bound',
  },
  {
    title: 'a StatefulSet whose claim waits for a webhook that does not respond',
    object: claimOfSet,
    async arrange(world) {
      await world.addClass();
      if (world.level === 'cluster') await failClaims(world);
      await addSet(world);
    },
    recorded: (world) =>
      setRefused(
        world,
        'Internal error occurred: failed calling webhook "claims.example.com": failed to call webhook: Post "https://127.0.0.1:1/?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused',
      ),
    verdict: 'waiting',
    cause: 'api-server',
    says: /failed calling webhook "claims\.example\.com"/,
    advises: /^See whether webhook claims\.example\.com runs: .*: kubectl get validatingwebhookconfigurations/,
    async cure(world) {
      await world.remove({ kind: 'webhook', name: world.name() });
      await world.eventually(() => world.addClaim({}, { name: 'probe' }));
      await tryAgain(world);
    },
    ends: 'bound',
  },
  {
    title: 'a claim for a Deployment whose Pods PodSecurity refuses',
    async arrange(world) {
      const enforce = { 'pod-security.kubernetes.io/enforce': 'restricted' };
      await world.patch({ kind: 'namespace', name: world.namespace }, { metadata: { labels: enforce } });
      await world.addClass(late);
      await world.addNode();
      await world.addClaim();
      await addDeployment(world);
    },
    recorded: (world) =>
      replicaRefused(
        world,
        'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main" must set securityContext.allowPrivilegeEscalation=false)',
      ),
    verdict: 'stuck',
    cause: 'rejected',
    says: /^ReplicaSet web-\w+ cannot create the Pods that would use the claim: it failed .* violates PodSecurity "restricted:latest": /,
    advises:
      /^Correct the securityContext .*: kubectl label namespace \S+ pod-security\.kubernetes\.io\/enforce=privileged --overwrite$/,
    async cure(world) {
      const enforce = { 'pod-security.kubernetes.io/enforce': 'privileged' };
      await world.patch({ kind: 'namespace', name: world.namespace }, { metadata: { labels: enforce } });
      await rollOut(world);
    },
    ends: 'bound',
  },
  {
    title: 'a claim for a Deployment whose Pods a quota refuses',
    async arrange(world) {
      await addQuota(world, { pods: '0' });
      await world.addClass(late);
      await world.addNode();
      await world.addClaim();
      await addDeployment(world);
    },
    recorded: (world) => replicaRefused(world, 'exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0'),
    verdict: 'stuck',
    cause: 'rejected',
    says: /^ReplicaSet web-\w+ cannot create the Pods .* exceeded quota: q, requested: pods=1/,
    advises: /^Raise ResourceQuota q, .*: kubectl patch resourcequota q .*"pods":"1"/,
    async cure(world) {
      await raiseQuota(world, { pods: '5' });
      await rollOut(world);
    },
    ends: 'bound',
  },
  {
    title: 'a claim for a Deployment whose Pods a quota refuses as they request nothing',
    async arrange(world) {
      await addQuota(world, { 'limits.cpu': '4' });
      await world.addClass(late);
      await world.addNode();
      await world.addClaim();
      await addDeployment(world);
    },
    recorded: (world) => replicaRefused(world, 'failed quota: q: must specify limits.cpu for: main'),
    verdict: 'stuck',
    cause: 'rejected',
    says: /failed quota: q: must specify limits\.cpu for: main$/,
    advises:
      /^ResourceQuota q is for Pods with requests and limits: set limits\.cpu .*: kubectl edit deployment\/web -n \S+$/,
    async cure(world) {
      await world.remove(quota);
      await rollOut(world);
    },
    ends: 'bound',
  },
  {
    title: 'a claim for a Deployment whose priority class does not exist',
    async arrange(world) {
      await world.addClass(late);
      await world.addNode();
      await world.addClaim();
      await addDeployment(world, { priorityClassName: world.name() });
    },
    recorded: (world) =>
      replicaRefused(world, `no PriorityClass with name ${world.name()} was found`, {
        priorityClassName: world.name(),
      }),
    verdict: 'stuck',
    cause: 'rejected',
    says: /no PriorityClass with name \S+ was found$/,
    advises: /^Create the PriorityClass, .*: kubectl create priorityclass \S+ --value=1000$/,
    async cure(world) {
      await world.add('priorityClass', { metadata: { name: world.name() }, value: 1000 });
      await rollOut(world);
    },
    ends: 'bound',
  },
  {
    title: 'a claim for a StatefulSet whose service account does not exist',
    object: claimOfSet,
    async arrange(world) {
      await world.addClass(late);
      await world.addNode();
      await addSet(world, { podSpec: { serviceAccountName: 'web' } });
    },
    async recorded(world) {
      await world.addClaim({}, { name: claimOfSet });
      const said = `error looking up service account ${world.namespace}/web: serviceaccount "web" not found`;
      await podOfSetRefused(world, said);
    },
    verdict: 'stuck',
    cause: 'rejected',
    says: /^StatefulSet web cannot create Pod web-0, which would use the claim: it failed .* serviceaccount "web" not found$/,
    advises: /: kubectl create serviceaccount web -n \S+$/,
    async cure(world) {
      await world.add('serviceAccount', { metadata: { name: 'web' } });
      await tryAgain(world);
    },
    ends: 'bound',
  },
  {
    title: 'a claim for a StatefulSet whose service account exists since its Pod was refused',
    object: claimOfSet,
    async arrange(world) {
      await world.addClass(late);
      await world.add('serviceAccount', { metadata: { name: 'web' } });
      await addSet(world, { podSpec: { serviceAccountName: 'web' } });
    },
    async recorded(world) {
      await world.addClaim({}, { name: claimOfSet });
      await podOfSetRefused(world, 'error looking up service account ns1/web: serviceaccount "web" not found');
    },
    cluster: { not: 'its controller tries again within seconds' },
    verdict: 'waiting',
    cause: 'rejected',
    says: /^StatefulSet web has not yet created Pod web-0, which would use the claim, and now ServiceAccount web exists: the next attempt comes within 16 min/,
    advises: /: kubectl annotate statefulset\/web /,
  },
  {
    title: 'a claim of a Deployment without replicas',
    async arrange(world) {
      await world.addClass(late);
      await world.addNode();
      await world.addClaim();
      await addDeployment(world, {}, 0);
    },
    recorded: nothing,
    verdict: 'waiting',
    cause: 'waits-for-consumer',
    says: /^No Pod uses the claim: Deployment web would create one, and has no replicas\.$/,
    advises: /^Nothing, if that is meant\. Otherwise scale it: kubectl scale deployment\/web -n \S+ --replicas=1$/,
    cure: (world) => world.patch(deployment, { spec: { replicas: 1 } }),
    ends: 'bound',
  },
  {
    title: 'an ephemeral volume whose claim a quota refuses',
    object: 'p-data',
    async arrange(world) {
      await world.addClass(late);
      await world.addNode();
      await addQuota(world, { persistentvolumeclaims: '0' });
      const spec = {
        storageClassName: world.name(),
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
      };
      await world.eventually(() =>
        world.add('pod', {
          metadata: { name: 'p' },
          spec: {
            containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
            ...onNode(world),
            volumes: [{ name: 'data', ephemeral: { volumeClaimTemplate: { spec } } }],
          },
        }),
      );
    },
    recorded: (world) =>
      world.addEvent(
        { kind: 'pod', name: 'p' },
        {
          ...{ reason: 'FailedBinding', component: ofEphemerals },
          message:
            'ephemeral volume data: create PVC p-data: persistentvolumeclaims "p-data" is forbidden: exceeded quota: q, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0',
        },
      ),
    verdict: 'stuck',
    cause: 'rejected',
    says: /^The controller of ephemeral volumes cannot create claim p-data of Pod p: it failed .* exceeded quota: q/,
    advises: /^Raise ResourceQuota q, /,
    cure: (world) => raiseQuota(world, { persistentvolumeclaims: '1' }),
    ends: 'bound',
  },
  {
    title: 'a claim of an ordinal that its StatefulSet does not have',
    object: 'data-web-2',
    async arrange(world) {
      await world.addClass();
      await addSet(world, { replicas: 2 });
    },
    recorded: nothing,
    verdict: 'unknown',
    cause: 'not-found',
    says: /^There is no claim \S+\/data-web-2: StatefulSet web creates claims data-web-0 to data-web-1\.$/,
    advises: /^If it is to be created: kubectl scale statefulset\/web -n \S+ --replicas=3$/,
    cure: (world) => world.patch(set, { spec: { replicas: 3 } }),
    ends: 'bound',
  },
  {
    title: 'a claim of a StatefulSet that waits until an earlier Pod is ready',
    object: 'data-web-1',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addSet(world, { replicas: 2, policy: 'OrderedReady' });
    },
    async recorded(world) {
      await world.addClaim({}, { name: claimOfSet });
      await world.bound(claimOfSet);
      await world.addPod(onNode(world), { name: 'web-0', claim: claimOfSet });
      await running(world, 'False');
    },
    cluster: (world) => running(world, 'False'),
    laterMs: 15 * 60_000,
    verdict: 'stuck',
    cause: 'not-found',
    says: /^There is no claim \S+\/data-web-1: StatefulSet web creates it once Pod web-0 is ready, which it is not 15 min after it was created\.$/,
    advises: /: kubectl describe pod web-0 -n \S+$/,
    cure: (world) => running(world, 'True'),
    ends: 'bound',
  },
  {
    title: 'a claim of a StatefulSet that waits for an earlier Pod, whose claim has no class',
    object: 'data-web-1',
    async arrange(world) {
      await world.addNode();
      await addSet(world, { replicas: 2, policy: 'OrderedReady' });
    },
    async recorded(world) {
      await world.addClaim({}, { name: claimOfSet });
      await world.addPod(onNode(world), { name: 'web-0', claim: claimOfSet });
    },
    verdict: 'stuck',
    cause: 'class-not-found',
    says: /^There is no claim \S+\/data-web-1: StatefulSet web creates it once Pod web-0 is ready, which needs claim data-web-0: StorageClass \S+ does not exist\. /,
    advises: /^Create StorageClass \S+/,
    async cure(world) {
      await world.addClass();
      await running(world, 'True');
    },
    ends: 'bound',
  },
  {
    title: 'a Pod that uses a claim whose name is misspelt',
    object: 'data1',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({}, { name: 'data-1' });
      await world.addPod({}, { claim: 'data1' });
    },
    recorded: nothing,
    verdict: 'stuck',
    cause: 'not-found',
    says: /^There is no claim \S+\/data1: Pod p uses it, and nobody has created it\. Claim data-1 exists: claimName of the Pod may be misspelt\.$/,
    advises: /^Correct claimName in the template of the Pod to data-1, or create the claim$/,
    cure: (world) => world.addClaim({}, { name: 'data1' }),
    ends: 'bound',
  },
  {
    title: 'a claim that exists in another namespace',
    object: 'elsewhere',
    async arrange(world) {
      await world.add('namespace', { metadata: { name: world.name('other') } });
      await world.addClass();
      await world.addClaim({}, { name: 'elsewhere', namespace: world.name('other') });
    },
    recorded: nothing,
    verdict: 'unknown',
    cause: 'not-found',
    says: /^There is no claim \S+\/elsewhere\. There is one of this name in namespace \S+-other/,
    advises: /^Run it for that one: csi-provisioner why \S+-other\/elsewhere$/,
    cure: (world) => world.addClaim({}, { name: 'elsewhere' }),
    ends: 'bound',
  },
  {
    title: 'the name of a Pod instead of a claim',
    object: 'p',
    async arrange(world) {
      await world.addClass();
      await world.addClaim();
      await world.addPod();
    },
    recorded: nothing,
    verdict: 'unknown',
    cause: 'not-found',
    says: /^There is no claim \S+\/p\. It is the name of a Pod, which uses c\.$/,
    advises: /^Run it for that one: csi-provisioner why \S+\/c$/,
  },
  {
    title: 'a DaemonSet that fits no node, whose Pods would use the claim',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await world.add('daemonSet', {
        metadata: { name: 'web' },
        spec: { selector: { matchLabels: labels }, template: podOf(world, 'c') },
      });
    },
    recorded: (world) =>
      world.patch(
        { kind: 'daemonSet', name: 'web' },
        {
          status: {
            observedGeneration: 1,
            currentNumberScheduled: 0,
            desiredNumberScheduled: 0,
            numberMisscheduled: 0,
            numberReady: 0,
          },
        },
      ),
    cluster: { not: 'the control plane of the tests runs no DaemonSet controller' },
    verdict: 'waiting',
    cause: 'waits-for-consumer',
    says: /^No Pod uses the claim: DaemonSet web would create one, and fits no node\.$/,
    advises:
      /^Correct nodeSelector, affinity or tolerations in its template, or label a node: kubectl get daemonset\/web -n \S+ -o yaml$/,
  },
  {
    title: 'a claim in a namespace that is being deleted',
    async arrange(world) {
      await world.add('claim', {
        metadata: { name: 'held', finalizers: ['example.com/held'] },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'none' },
      });
      await world.remove({ kind: 'namespace', name: world.namespace });
    },
    recorded: nothing,
    verdict: 'stuck',
    cause: 'not-found',
    says: /^There is no claim \S+\/c, and none can be created: the namespace has been deleted \d+ s ago and is still there\./,
    advises: /^Free what holds it, .*: kubectl get namespace \S+ -o yaml$/,
    cure: (world) => world.patch({ kind: 'claim', name: 'held' }, { metadata: { finalizers: null } }),
    ends: 'gone',
  },
  {
    title: 'a claim whose class is misspelt',
    async arrange(world) {
      await world.addClass({ metadata: { name: world.name('fast') } });
      await world.addClaim({ storageClassName: world.name('fsat') });
    },
    recorded: nothing,
    verdict: 'stuck',
    cause: 'class-not-found',
    says: /^StorageClass \S+-fsat does not exist\. The cluster has \S+-fast: storageClassName may be misspelt\.$/,
    advises:
      /^Create StorageClass \S+-fsat, or recreate the claim with class \S+-fast: kubectl patch pvc c -n \S+ --dry-run=client .* \| kubectl replace --force -f -$/,
    async cure(world) {
      await world.remove({ kind: 'claim', name: 'c' });
      await world.eventually(async () => assert.equal(await world.read({ kind: 'claim', name: 'c' }), undefined));
      await world.addClaim({ storageClassName: world.name('fast') });
    },
    ends: 'bound',
  },
  {
    title: 'a claim that names a volume whose name is misspelt',
    async arrange(world) {
      await world.addVolume({}, { name: world.name('backup') });
      await world.addClaim({ volumeName: world.name('bakcup') });
    },
    recorded: nothing,
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /^The claim names PersistentVolume \S+-bakcup, which does not exist\. The cluster has \S+-backup: spec\.volumeName may be misspelt\.$/,
    advises:
      /^Create that volume, or recreate the claim for \S+-backup: kubectl patch pvc c .* \| kubectl replace --force -f -$/,
    async cure(world) {
      await world.remove({ kind: 'claim', name: 'c' });
      await world.eventually(async () => assert.equal(await world.read({ kind: 'claim', name: 'c' }), undefined));
      await world.addClaim({ volumeName: world.name('backup') });
    },
    ends: 'bound',
  },
  {
    title: 'a claim of a StatefulSet that has another class since',
    object: claimOfSet,
    async arrange(world) {
      await world.addClass();
      await world.addClaim({ storageClassName: world.name('former') }, { name: claimOfSet });
      await addSet(world);
    },
    recorded: nothing,
    verdict: 'stuck',
    cause: 'class-not-found',
    says: /^StorageClass \S+-former does not exist\./,
    advises:
      /or delete the claim and its Pod: StatefulSet web creates both again, .*: kubectl delete pvc\/data-web-0 pod\/web-0 -n \S+ --ignore-not-found --wait=false$/,
    async cure(world) {
      await world.remove({ kind: 'claim', name: claimOfSet });
      await world.remove({ kind: 'pod', name: 'web-0' });
    },
    ends: 'bound',
  },
  {
    title: 'a StatefulSet whose template names a class that does not exist',
    object: claimOfSet,
    async arrange(world) {
      await world.addClass({ metadata: { name: world.name('fast') } });
      await addSet(world, { storageClassName: world.name('fsat') });
    },
    recorded: (world) => world.addClaim({ storageClassName: world.name('fsat') }, { name: claimOfSet }),
    verdict: 'stuck',
    cause: 'class-not-found',
    says: /^StorageClass \S+-fsat does not exist\. The cluster has \S+-fast: /,
    advises:
      /or correct storageClassName in the volumeClaimTemplates of StatefulSet web, such as to \S+-fast\. .*: kubectl delete statefulset\/web -n \S+ --cascade=orphan$/,
    cure: (world) => world.addClass({ metadata: { name: world.name('fsat') } }),
    ends: 'bound',
  },
  {
    title: 'a claim without a class, and no default one',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({ storageClassName: undefined });
    },
    recorded: nothing,
    verdict: 'stuck',
    cause: 'no-class',
    says: /^The claim names no StorageClass, and the cluster has no default one[.:] /,
    advises:
      /: kubectl annotate storageclass \S+ storageclass\.kubernetes\.io\/is-default-class=true --overwrite(\. Or, if PersistentVolume .*)?$/,
    async cure(world) {
      await world.remove({ kind: 'claim', name: 'c' }); // a default class would be that of all rows
      await world.eventually(async () => assert.equal(await world.read({ kind: 'claim', name: 'c' }), undefined));
      await world.addClaim();
    },
    ends: 'bound',
  },
  {
    title: 'a claim without a class, and a volume that would fit but for its class',
    async arrange(world) {
      await world.addClass();
      const accessModes = ['ReadWriteOncePod'];
      await world.addVolume({ storageClassName: world.name('manual'), accessModes });
      await world.addClaim({ storageClassName: undefined, accessModes });
    },
    recorded: nothing,
    cluster: { not: 'classes of other rows are nearly the default one, which says more' },
    verdict: 'stuck',
    cause: 'no-class',
    says: /PersistentVolume \S+volume would fit, except for its class \S+manual\.$/,
    advises:
      /=true --overwrite\. Or, if PersistentVolume \S+volume is meant, recreate the claim with its class: kubectl patch pvc c .*"storageClassName":"\S+manual"/,
  },
  {
    title: 'a claim without a class, and a class that is nearly marked as the default one',
    async arrange(world) {
      const annotations = { 'storageclass.kubernetes.io/is-default-class': 'True' };
      await world.addClass({ metadata: { name: world.name(), annotations } });
      await world.addClaim({ storageClassName: undefined });
    },
    recorded: nothing,
    verdict: 'stuck',
    cause: 'no-class',
    says: /^The claim names no StorageClass, and the cluster has no default one: StorageClass \S+ has the annotation storageclass\.kubernetes\.io\/is-default-class: "True", and only /,
    advises: /: kubectl annotate storageclass \S+ storageclass\.kubernetes\.io\/is-default-class=true --overwrite$/,
    async cure(world) {
      await world.remove({ kind: 'claim', name: 'c' }); // a default class would be that of all rows
      await world.eventually(async () => assert.equal(await world.read({ kind: 'claim', name: 'c' }), undefined));
      await world.addClaim();
    },
    ends: 'bound',
  },
  {
    title: 'a claim of class "", and a default class',
    async arrange(world) {
      const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
      await world.addClass({ metadata: { name: world.name(), annotations } });
      await world.addClaim({ storageClassName: '' });
    },
    recorded: nothing,
    cluster: { not: 'a default class would be that of all rows' },
    verdict: 'stuck',
    cause: 'static-class',
    says: /Without storageClassName it would get the default class ns1\.$/,
    advises:
      /^Create a PersistentVolume of this class that fits, or recreate the claim with class ns1: kubectl patch pvc c /,
  },
  {
    title: 'a claim to which nobody gives the default class',
    async arrange(world) {
      await world.addClaim({ storageClassName: undefined });
      const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
      await world.addClass({ metadata: { name: world.name(), annotations } });
    },
    recorded: nothing,
    cluster: { not: 'kube-controller-manager gives it the class, and a default class would be that of all rows' },
    laterMs: 120_000,
    verdict: 'stuck',
    cause: 'no-class',
    says: /^The claim names no StorageClass, and kube-controller-manager has not given it the default one, \S+, for 2 min\.$/,
    advises: /^Check that kube-controller-manager runs; .*: kubectl patch pvc c .*"storageClassName":"ns1"/,
  },
  {
    title: 'a provisioner that may not create PersistentVolumes',
    async arrange(world) {
      await world.addClass();
      await world.addClaim();
    },
    async recorded(world) {
      await world.handedOver();
      await world.addEvent(
        { kind: 'claim', name: 'c' },
        {
          reason: 'ProvisioningFailed',
          message:
            'Error creating provisioned PV object for claim ns1/c: persistentvolumes is forbidden: User "system:serviceaccount:driver:csi" cannot create resource "persistentvolumes" in API group "" at the cluster scope. The volume is kept at the storage, saving it is tried again every minute.',
        },
      );
    },
    cluster: { not: 'the provisioner of the rows has its rights' },
    verdict: 'stuck',
    cause: 'rejected',
    says: /cannot create resource "persistentvolumes"/,
    advises:
      /^Add the rule \{apiGroups: \[""\], resources: \["persistentvolumes"\], verbs: \["create"\]\} .*: kubectl create clusterrole csi-create-persistentvolumes /,
  },
  {
    title: 'a class of a provisioner that is no CSI driver, and gives no sign',
    async arrange(world) {
      await world.addClass({ provisioner: `${world.name()}/nfs` });
      await world.addClaim();
    },
    recorded: (world) =>
      world.patch(
        { kind: 'claim', name: 'c' },
        { metadata: { annotations: { 'volume.kubernetes.io/storage-provisioner': `${world.name()}/nfs` } } },
      ),
    verdict: 'stuck',
    cause: 'no-provisioner',
    says: /^There is no sign of a provisioner for \S+\/nfs: no CSIDriver, no Lease and no event/,
    advises:
      /^If the provisioner is installed, check that its Pod runs, and see its log: .* Otherwise install the driver/,
    async cure(world) {
      await world.remove({ kind: 'class', name: world.name() });
      await world.addClass();
    },
    ends: 'bound',
  },
  {
    title: 'a class whose provisioner is nearly the name of a driver',
    async arrange(world) {
      await world.add('driver', { metadata: { name: `csi.${world.name()}.example.com` }, spec: {} });
      await world.addClass({ provisioner: `${world.name()}.csi.example.com` });
      await world.addClaim();
    },
    recorded: (world) =>
      world.patch(
        { kind: 'claim', name: 'c' },
        {
          metadata: {
            annotations: { 'volume.kubernetes.io/storage-provisioner': `${world.name()}.csi.example.com` },
          },
        },
      ),
    verdict: 'stuck',
    cause: 'no-provisioner',
    says: /^There is no sign of a provisioner for \S+\.csi\.example\.com: .* The cluster has the driver csi\.\S+\.example\.com: the provisioner of StorageClass \S+ may be misspelt\.$/,
    advises:
      /^If csi\.\S+ is meant, recreate the class: kubectl patch storageclass \S+ --dry-run=client .* \| kubectl replace --force -f -$/,
    async cure(world) {
      await world.remove({ kind: 'class', name: world.name() });
      await world.addClass();
    },
    ends: 'bound',
  },
];

/** What is under way, and none of these causes. */
export const healthyOwners: readonly Row[] = [
  {
    title: 'a claim of a StatefulSet, from its creation on',
    object: claimOfSet,
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addSet(world);
    },
    recorded: nothing,
    healthy: ['not-found', 'in-progress', 'not-handed-over', 'volume-made', 'bound'],
    ends: 'bound',
  },
  {
    title: 'a claim that no Pod uses yet, beside a StatefulSet that cannot create its own Pods',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await addSet(world);
    },
    recorded: (world) => podOfSetRefused(world, 'no'),
    cluster: { not: 'a recorded set shows it' },
    healthy: ['waits-for-consumer'],
  },
  {
    title: 'a claim of a Deployment that has no replicas, and could create no Pod before',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await addDeployment(world);
    },
    async recorded(world) {
      await replicaRefused(world, 'exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0');
      await world.patch(deployment, { spec: { replicas: 0 } });
    },
    cluster: { not: 'a recorded set shows it' },
    healthy: ['waits-for-consumer'],
  },
  {
    title: 'a claim without a class, for which a default class was created a moment ago',
    async arrange(world) {
      await world.addClaim({ storageClassName: undefined });
      const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
      await world.addClass({ metadata: { name: world.name(), annotations } });
    },
    recorded: nothing,
    cluster: { not: 'a default class would be that of all rows' },
    healthy: ['no-class'],
  },
];
