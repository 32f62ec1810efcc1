/** Whose log and which container says more about an error of the driver. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Pod } from '../../../src/explain/cluster-objects.ts';
import type { Reading } from '../../../src/explain/cluster-reader.ts';
import { driverLogText } from '../../../src/explain/driver-log.ts';

function pod(...containers: [name: string, image: string][]): Reading<Pod> {
  const spec = { nodeName: 'n1', containers: containers.map(([name, image]) => ({ name, image })) };
  return { kind: 'found', value: { metadata: { name: 'p' }, spec } };
}
const of = (reading: Reading<Pod>): string => driverLogText({ namespace: 'kube-system', host: 'ebs-0', pod: reading });

describe('the log of a driver', () => {
  test('is that of the container which is none of the sidecars', () => {
    const reading = pod(
      ['csi-provisioner', 'registry.example.com/sig-storage/csi-provisioner:v5'],
      ['attacher', 'registry.example.com/external-attacher:v4'],
      ['ebs-plugin', 'registry.example.com/aws-ebs-csi-driver:v1'],
      ['liveness', 'registry.example.com/livenessprobe@sha256:0'],
      ['proxy', 'registry.example.com/kube-rbac-proxy:v1'],
    );
    assert.equal(
      of(reading),
      'See the log of container ebs-plugin in Pod kube-system/ebs-0: kubectl logs -n kube-system ebs-0 -c ebs-plugin',
    );
  });

  test('is in another Pod of the node where the provisioner has a Pod for itself', () => {
    assert.match(
      of(pod(['csi-provisioner', 'csi-provisioner:v5'])),
      /^See the log of the driver's own Pod on node n1: /,
    );
  });

  test('is named as well as can be where the Pod cannot be read, or its namespace is not known', () => {
    const unreadable = of({ kind: 'unreadable', why: 'the permission is missing' });
    assert.match(unreadable, /: kubectl logs -n kube-system ebs-0 --all-containers --since=1h$/);
    assert.match(of({ kind: 'missing', unserved: false }), /^See the log of the driver's container on ebs-0, /);
    assert.match(driverLogText({ host: 'ebs-0' }), /in Pod ebs-0, beside the provisioner$/);
    assert.match(driverLogText(undefined), /which is in the Pod of the provisioner$/);
  });
});
