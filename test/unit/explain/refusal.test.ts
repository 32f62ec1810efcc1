/** What the API server says when it refuses a claim or a Pod of a controller, and what is to be done. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { refusalMeaning, type RefusedCreation } from '../../../src/explain/causes/refusal.ts';
import type { ClusterEvent } from '../../../src/explain/cluster-objects.ts';
import { refusedClaim, refusedPod } from '../../../src/explain/refused-creations.ts';

const ofSet: RefusedCreation = { namespace: 'shop', owner: 'statefulset/web', what: 'claim' };
const ofDeployment: RefusedCreation = { namespace: 'shop', owner: 'deployment/web', what: 'pod' };

describe('a refusal', () => {
  const rows: readonly [text: string, refused: RefusedCreation, cure: RegExp][] = [
    [
      'exceeded quota: q, requested: requests.storage=10Gi, used: requests.storage=25Gi, limited: requests.storage=30Gi',
      ofSet,
      /: kubectl patch resourcequota q -n shop --type=merge -p '\{"spec":\{"hard":\{"requests\.storage":"35Gi"\}\}\}'$/,
    ],
    [
      'exceeded quota: q, requested: persistentvolumeclaims=1,requests.storage=1Gi, used: persistentvolumeclaims=5,requests.storage=512Mi, limited: persistentvolumeclaims=5,requests.storage=1Gi',
      ofSet,
      /"hard":\{"persistentvolumeclaims":"6","requests\.storage":"1536Mi"\}/,
    ],
    [
      'exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=1800m, limited: requests.cpu=2',
      ofDeployment,
      /"requests\.cpu":"2300m"/,
    ],
    [
      'status unknown for quota: q, resources: persistentvolumeclaims',
      ofSet,
      /^kube-controller-manager has not counted/,
    ],
    ['maximum cpu usage per Container is 1, but limit is 2', ofDeployment, /: kubectl edit deployment\/web -n shop$/],
    ['[maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi]', ofSet, /--cascade=orphan$/],
    ['pod rejected: RuntimeClass "gvisor" not found', ofDeployment, /^Create RuntimeClass gvisor, or correct/],
    ['admission webhook "w.example.com" denied the request: no', ofSet, /^Do what webhook w\.example\.com asks for/],
    ['Pod "web-0" is invalid: metadata.labels: Invalid value: too long', ofDeployment, /^Correct the field that/],
    [
      'pods is forbidden: User "system:serviceaccount:kube-system:statefulset-controller" cannot create resource "pods" in API group "" in the namespace "shop"',
      ofDeployment,
      /^Add the rule \{apiGroups: \[""\], resources: \["pods"\], verbs: \["create"\]\} to a Role in namespace shop of /,
    ],
    ['something that is new', ofDeployment, /^Correct what the message names: kubectl edit deployment\/web -n shop$/],
  ];
  for (const [text, refused, cure] of rows) {
    test(`has its own cure: ${text}`, () => {
      const meaning = refusalMeaning(`persistentvolumeclaims "c" is forbidden: ${text}`, refused);
      assert.equal(meaning.cause, 'rejected');
      assert.match(meaning.cure, cure);
    });
  }

  for (const text of [
    'failed calling webhook "w": context deadline exceeded',
    'Operation cannot be fulfilled on resourcequotas "q": the object has been modified',
    'etcdserver: request timed out',
  ]) {
    test(`passes by itself: ${text}`, () => {
      assert.equal(refusalMeaning(text, ofSet).cause, 'api-server');
    });
  }

  test('does not wait for a webhook whose Service is gone', () => {
    const text = 'failed calling webhook "w": failed to call webhook: Post "https://a.b.svc/": service "a" not found';
    const { cause, cure } = refusalMeaning(text, ofSet);
    assert.equal(cause, 'api-server');
    assert.match(cure, /^The Service of webhook w does not exist: .*delete its webhook configuration, too\./);
  });

  test('gives no command with a name that cannot be copied', () => {
    const { cure } = refusalMeaning('serviceaccount "a\u202e" not found', ofDeployment);
    assert.match(cure, /^Create the ServiceAccount, or correct serviceAccountName in the Pod template$/);
  });
});

const event = (message: string, kind = 'StatefulSet', name = 'web'): ClusterEvent => ({
  metadata: { name: 'e' },
  ...{ reason: 'FailedCreate', message, involvedObject: { kind, name } },
});

describe('an event about a refusal', () => {
  const said = 'persistentvolumeclaims "data-web-0" is forbidden: no';
  for (const [who, message] of [
    ['a StatefulSet', `create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: ${said}`],
    [
      'a StatefulSet of a newer version',
      `Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: ${said}`,
    ],
    ['the controller of ephemeral volumes', `ephemeral volume data: create PVC data-web-0: ${said}`],
    [
      'one of many similar events',
      `(combined from similar events): Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: ${said}`,
    ],
    ['an operator', `Reconciling failed: ${said}`],
  ] as const) {
    test(`of ${who} names the claim`, () => {
      assert.equal(refusedClaim([event(message)], 'data-web-0')?.refusal.text, said);
      assert.equal(refusedClaim([event(message)], 'data-web-1'), undefined);
    });
  }

  test('about a claim that does not exist is none about its creation', () => {
    const message = 'Error creating: persistentvolumeclaim "data-web-0" not found';
    assert.equal(refusedClaim([event(message)], 'data-web-0'), undefined);
  });

  test('counts once, although the Pod has one of its own', () => {
    const claim = event(`Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: ${said}`);
    const pod = event(`Create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: ${said}`);
    assert.equal(refusedClaim([claim, pod], 'data-web-0')?.refusal.count, 1);
  });

  test('about a Pod counts for its own controller', () => {
    const events = [
      event('Error creating: pods "web-1-" is forbidden: no', 'ReplicaSet', 'web-1'),
      event('Error creating: pods "other-1-" is forbidden: never', 'ReplicaSet', 'other-1'),
    ];
    const refused = refusedPod(events, { kind: 'ReplicaSet', name: 'web-1' });
    assert.equal(refused?.refusal.text, 'pods "web-1-" is forbidden: no');
    assert.equal(refused.pod, undefined);
  });
});
