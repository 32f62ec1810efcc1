import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ClaimDecision, claimDecision } from '../../../../src/provision/claim/claim-decision.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../../../src/provision/objects.ts';
import { isKnownProvisioner, makeClaim, makeClass, type Metadata } from '../claims-and-volumes.ts';

const ga = 'volume.kubernetes.io/storage-provisioner';
const beta = 'volume.beta.kubernetes.io/storage-provisioner';
const betaClass = 'volume.beta.kubernetes.io/storage-class';
const node = 'volume.kubernetes.io/selected-node';
const alphaNode = 'volume.alpha.kubernetes.io/selected-node';

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
