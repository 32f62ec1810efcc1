/** What the last attempt lacked, and is there when somebody asks. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ClaimFacts } from '../../../src/explain/claim-facts-reader.ts';
import { claimExplanation } from '../../../src/explain/explain-claim.ts';
import type { Explanation } from '../../../src/explain/explanation.ts';

const nowMs = Date.parse('2026-03-01T12:00:00Z');
const driver = 'd.example.com';
const here = <T>(value: T): { kind: 'found'; value: T } => ({ kind: 'found', value });
const ago = (seconds: number): string => new Date(nowMs - seconds * 1000).toISOString();

/** A claim whose only attempt failed a while ago. */
function explained(message: string, facts: Partial<ClaimFacts>, failedSecondsAgo = 60): Explanation {
  const time = ago(failedSecondsAgo);
  const event = {
    metadata: { name: 'e' },
    reason: 'ProvisioningFailed',
    message,
    source: { component: `${driver}_pod-1` },
    count: 8,
    firstTimestamp: time,
    lastTimestamp: time,
  };
  const metadata = {
    namespace: 'ns1',
    name: 'c',
    creationTimestamp: ago(3600),
    annotations: { 'volume.kubernetes.io/storage-provisioner': driver },
  };
  return claimExplanation({
    nowMs,
    claim: { metadata, spec: { storageClassName: 'sc', accessModes: ['ReadWriteOnce'] }, status: { phase: 'Pending' } },
    storageClass: here({ metadata: { name: 'sc' }, provisioner: driver }),
    provisioner: { name: driver, driver: here({ metadata: { name: driver } }), leases: here([]) },
    events: here([event]),
    ...facts,
  });
}

const secret = (madeSecondsAgo: number): Partial<ClaimFacts> => ({
  secret: {
    reference: { namespace: 'ns1', name: 'key' },
    reading: here({ metadata: { name: 'key', creationTimestamp: ago(madeSecondsAgo) } }),
  },
});
const noSecret = 'error getting secret key in namespace ns1: secrets "key" not found';

describe('after the cure', () => {
  test('why says since when it is there, and when the next attempt is', () => {
    const { verdict, cause, message, cure } = explained(noSecret, secret(20));
    assert.deepEqual({ verdict, cause }, { verdict: 'waiting', cause: 'in-progress' });
    assert.match(
      message,
      /^Secret ns1\/key exists, for 20 s; the next attempt is due within 3 min\. The last one, 60 s ago, failed without it: /,
    );
    assert.match(cure, /^Nothing/);
  });

  test('what was there before the attempt is no cure', () => {
    assert.equal(explained(noSecret, secret(600)).cause, 'secret-missing');
  });

  test('a provisioner that does not try again is looked at', () => {
    const { verdict, cure } = explained(noSecret, secret(550), 560);
    assert.equal(verdict, 'stuck');
    assert.match(cure, /^The provisioner should have tried again/);
  });

  test('a grant, a source and an attributes class count as well', () => {
    const source = { apiGroup: '', kind: 'PersistentVolumeClaim', namespace: 'ns2', name: 'src' };
    const claim = {
      metadata: { namespace: 'ns2', name: 'src', uid: 'u', creationTimestamp: ago(9) },
      spec: { volumeName: 'v' },
      status: { phase: 'Bound' },
    };
    const spec = {
      from: [{ kind: 'PersistentVolumeClaim', namespace: 'ns1' }],
      to: [{ kind: 'PersistentVolumeClaim' }],
    };
    const grants = here([{ metadata: { name: 'g', creationTimestamp: ago(10) }, spec }]);
    const refused = "accessing ns2/src of PersistentVolumeClaim dataSource from ns1/c isn't allowed";
    const granted = { source, grants, sourceClaim: here(claim) };
    assert.match(
      explained(refused, granted).message,
      /^ReferenceGrant g allows PersistentVolumeClaim ns2\/src, for 10 s/,
    );
    const missing =
      'error getting handle for DataSource Type PersistentVolumeClaim by Name src: error getting PVC src (namespace "ns1") from api server: persistentvolumeclaim "src" not found';
    assert.match(explained(missing, granted).message, /^PersistentVolumeClaim ns2\/src exists, for 9 s/);
    const attributesClass = here({ metadata: { name: 'gold', creationTimestamp: ago(5) }, driverName: driver });
    const unknown = 'volumeattributesclasses.storage.k8s.io "gold" not found';
    assert.match(explained(unknown, { attributesClass }).message, /^VolumeAttributesClass .* exists, for 5 s/);
  });
});
