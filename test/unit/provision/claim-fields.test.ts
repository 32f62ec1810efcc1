import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type ClaimDecision,
  claimDecision,
  claimReference,
  type ClaimWish,
  claimWish,
  selectedNode,
} from '../../../src/provision/claim-fields.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../../src/provision/objects.ts';
import { isKnownProvisioner, makeClaim, makeClass, type Metadata } from './claims-and-volumes.ts';

const node = 'volume.kubernetes.io/selected-node';
const alphaNode = 'volume.alpha.kubernetes.io/selected-node';

describe('what a claim says', () => {
  for (const { name, annotations, want } of [
    { name: 'no node', annotations: {}, want: '' },
    { name: 'the node of the GA annotation', annotations: { [node]: 'n1' }, want: 'n1' },
    { name: 'the node of the alpha annotation', annotations: { [alphaNode]: 'n9' }, want: 'n9' },
    { name: 'an empty GA annotation wins', annotations: { [node]: '', [alphaNode]: 'n9' }, want: '' },
  ]) {
    test(name, () => {
      assert.equal(selectedNode(makeClaim({ annotations })), want);
    });
  }

  test('a claim without annotations has no node', () => {
    const { annotations: _none, ...metadata } = makeClaim().metadata;
    assert.equal(selectedNode({ ...makeClaim(), metadata }), '');
  });

  test('the reference holds what points at one state of one claim, and nothing else', () => {
    assert.deepEqual(claimReference(makeClaim({ labels: { a: 'b' } })), {
      kind: 'PersistentVolumeClaim',
      apiVersion: 'v1',
      namespace: 'ns',
      name: 'a',
      uid: 'u1',
      resourceVersion: '7',
    });
  });
});

const ga = 'volume.kubernetes.io/storage-provisioner';
const beta = 'volume.beta.kubernetes.io/storage-provisioner';
const betaClass = 'volume.beta.kubernetes.io/storage-class';

interface DecisionCase {
  name: string;
  annotations?: NonNullable<Metadata['annotations']>;
  metadata?: Metadata;
  spec?: Partial<PersistentVolumeClaim['spec']>;
  classes?: StorageClass[];
  qualifies?: boolean;
  /** A reason, or `yes` with the name of the class. */
  want: string;
}

const late = makeClass('c1', { volumeBindingMode: 'WaitForFirstConsumer' });
const { volumeBindingMode: _mode, ...withoutMode } = makeClass();

const cases: DecisionCase[] = [
  { name: 'a claim of ours is provisioned', want: 'yes c1' },
  { name: 'a claim of another provisioner is left alone', annotations: { [ga]: 'other' }, want: 'other-provisioner' },
  { name: 'a claim that names its volume is left alone', spec: { volumeName: 'v' }, want: 'bound' },
  { name: 'an empty volume name counts as none', spec: { volumeName: '' }, want: 'yes c1' },
  { name: 'a claim without annotation is left alone', annotations: {}, want: 'not-requested' },
  { name: 'the beta annotation alone names the provisioner', annotations: { [beta]: 'drv' }, want: 'yes c1' },
  {
    name: 'a GA annotation that names another provisioner wins over the beta one',
    annotations: { [ga]: 'other', [beta]: 'drv' },
    want: 'other-provisioner',
  },
  {
    name: 'a GA annotation that names us wins over the beta one',
    annotations: { [ga]: 'drv', [beta]: 'other' },
    want: 'yes c1',
  },
  {
    name: 'an empty GA annotation wins over the beta one',
    annotations: { [ga]: '', [beta]: 'drv' },
    want: 'other-provisioner',
  },
  { name: 'an additional provisioner name is ours, too', annotations: { [ga]: 'in-tree' }, want: 'yes c1' },
  {
    name: 'the provisioner of the class does not matter here',
    classes: [makeClass('c1', { provisioner: 'whoever' })],
    want: 'yes c1',
  },
  { name: 'a missing class is reported with its name', classes: [], want: 'class-missing c1' },
  { name: 'an empty class name counts as a missing class', spec: { storageClassName: '' }, want: 'class-missing ' },
  {
    name: 'the beta annotation of the class wins over the field',
    annotations: { [ga]: 'drv', [betaClass]: 'c2' },
    classes: [makeClass('c2')],
    want: 'yes c2',
  },
  {
    name: 'an empty beta annotation of the class wins over the field',
    annotations: { [ga]: 'drv', [betaClass]: '' },
    want: 'class-missing ',
  },
  { name: 'WaitForFirstConsumer without a node waits', classes: [late], want: 'waits-for-node' },
  {
    name: 'WaitForFirstConsumer with an empty node waits',
    annotations: { [ga]: 'drv', [node]: '' },
    classes: [late],
    want: 'waits-for-node',
  },
  {
    name: 'WaitForFirstConsumer with a node is provisioned',
    annotations: { [ga]: 'drv', [node]: 'n1' },
    classes: [late],
    want: 'yes c1',
  },
  {
    name: 'WaitForFirstConsumer with the alpha annotation alone waits',
    annotations: { [ga]: 'drv', [alphaNode]: 'n1' },
    classes: [late],
    want: 'waits-for-node',
  },
  { name: 'a claim that the qualifier refuses is left alone', qualifies: false, want: 'not-qualified' },
  { name: 'the volume name counts before the qualifier', spec: { volumeName: 'v' }, qualifies: false, want: 'bound' },
  {
    name: 'the qualifier counts before the provisioner',
    annotations: {},
    qualifies: false,
    want: 'not-qualified',
  },
  { name: 'a class without a binding mode is Immediate', classes: [withoutMode], want: 'yes c1' },
  {
    name: 'a claim that is being deleted is provisioned',
    metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' },
    want: 'yes c1',
  },
];

function summary(decision: ClaimDecision): string {
  if (decision.provision) return `yes ${decision.storageClass.metadata.name}`;
  return decision.reason === 'class-missing' ? `class-missing ${decision.className}` : decision.reason;
}

describe('the decision whether a claim is provisioned', () => {
  for (const { name, annotations, metadata = {}, spec, classes = [makeClass()], qualifies = true, want } of cases) {
    test(name, () => {
      const claim = makeClaim({ ...metadata, ...(annotations && { annotations }) }, spec);
      const before = structuredClone(claim);
      const decision = claimDecision({
        claim,
        qualifies,
        isKnownProvisioner,
        getClass: (className) => classes.find((each) => each.metadata.name === className),
      });
      assert.equal(summary(decision), want);
      assert.deepEqual(claim, before);
    });
  }
});

const claim = { namespace: 'ns', name: 'a', uid: 'u1' };
const record = { claim, volume: { name: 'pvc-u1' } };
const inPhase = (phase: string, found: PersistentVolumeClaim): PersistentVolumeClaim => ({
  ...found,
  status: { ...found.status, phase },
});
const provisioner = (name: string) => ({ annotations: { 'volume.kubernetes.io/storage-provisioner': name } });

describe('what a claim wants', () => {
  const cases: { title: string; found: PersistentVolumeClaim | undefined; want: ClaimWish }[] = [
    { title: 'that is pending', found: makeClaim(), want: 'wanted' },
    { title: 'that is not there', found: undefined, want: 'gone' },
    { title: 'that was recreated with the same name', found: makeClaim({ uid: 'u2' }), want: 'gone' },
    {
      title: 'that is being deleted, and still exists',
      found: makeClaim({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['kubernetes.io/pvc-protection'] }),
      want: 'wanted',
    },
    {
      title: 'that is bound to the volume',
      found: inPhase('Bound', makeClaim({}, { volumeName: 'pvc-u1' })),
      want: 'has-it',
    },
    {
      title: 'whose volume was lost',
      found: inPhase('Lost', makeClaim({}, { volumeName: 'pvc-u1' })),
      want: 'has-it',
    },
    {
      title: 'into which somebody wrote the name of the volume',
      found: makeClaim({}, { volumeName: 'pvc-u1' }),
      want: 'wanted',
    },
    {
      title: 'that is bound to another volume',
      found: inPhase('Bound', makeClaim({}, { volumeName: 'other' })),
      want: 'elsewhere',
    },
    { title: 'that waits for another volume', found: makeClaim({}, { volumeName: 'other' }), want: 'elsewhere' },
    { title: 'that asks for another provisioner', found: makeClaim(provisioner('other')), want: 'elsewhere' },
    { title: 'that asks for a second name of ours', found: makeClaim(provisioner('in-tree')), want: 'wanted' },
    { title: 'that asks for no provisioner', found: makeClaim({ annotations: {} }), want: 'elsewhere' },
  ];
  for (const { title, found, want } of cases) {
    test(`${title}: ${want}`, async () => {
      assert.equal(await claimWish(record, found, { isKnownProvisioner, qualifies: () => true }), want);
    });
  }

  test('is elsewhere when the provisioner says so, and wanted when it cannot say', async () => {
    const no = { isKnownProvisioner, qualifies: () => Promise.resolve(false) };
    assert.equal(await claimWish(record, makeClaim(), no), 'elsewhere');
    const unknown = { isKnownProvisioner, qualifies: () => Promise.reject(new Error('no answer')) };
    assert.equal(await claimWish(record, makeClaim(), unknown), 'wanted');
  });

  test('is elsewhere for any volume when none was begun', async () => {
    const bound = makeClaim({}, { volumeName: 'pvc-u1' });
    assert.equal(await claimWish({ claim }, bound, { isKnownProvisioner, qualifies: () => true }), 'elsewhere');
    assert.equal(await claimWish({ claim }, makeClaim(), { isKnownProvisioner, qualifies: () => true }), 'wanted');
  });
});
