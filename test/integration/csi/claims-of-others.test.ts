/**
 * Users of another driver fill their claims with annotations: the program, with little memory, still serves its own
 * claims.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import { eventually } from '../../support/eventually.ts';
import { programFile } from '../../support/program-file.ts';
import { startProcess } from '../../support/started-process.ts';
import { answerWith, RawGrpcServer } from './raw-grpc-server.ts';
import { createdVolume, startAnswers } from './encoded-answers.ts';
import { driverName, resource } from '../../support/api-scene.ts';
import { StoredCluster } from './stored-cluster.ts';

const storageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'sc' },
  provisioner: driverName,
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'Immediate',
};
/** Together 48 MB, more than the heap of the program. */
const claims = 200;
const notes = 'x'.repeat(240_000);
const heapMib = 32;

const claim = (name: string, annotations: Record<string, string>): SandboxObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { namespace: 'ns1', name, annotations },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'sc' },
});
const foreign = { 'volume.kubernetes.io/storage-provisioner': 'other.example.com', notes };

describe('large claims of another driver', () => {
  for (const { title, stored, fault } of [
    { title: 'that exist at the start, and are streamed', stored: true, fault: false },
    { title: 'that exist at the start, and are listed in pages', stored: true, fault: true },
    { title: 'that are created while it runs', stored: false, fault: false },
  ]) {
    test(`${title} leave the program enough memory to serve its own`, async () => {
      const others = Array.from({ length: claims }, (_, index) => claim(`other-${index}`, foreign));
      await using cluster = await StoredCluster.start([storageClass, ...(stored ? others : [])]);
      if (fault) cluster.server.faults.add({ match: { watch: true }, action: { type: 'noWatchList' } });
      await using driver = await RawGrpcServer.start((call) => {
        answerWith(
          call,
          call.method === 'CreateVolume' ? createdVolume('v') : (startAnswers[call.method] ?? Buffer.alloc(0)),
        );
      });
      const flags = [`--max-old-space-size=${heapMib}`, '--max-semi-space-size=4'];
      const program = programFile('csi-provisioner');
      const args = [...flags, program, `--csi-address=${driver.socketPath}`, `--master=${cluster.url}`];
      const sidecar = await startProcess({ program: process.execPath, args, env: { KUBECONFIG: undefined } });
      try {
        const api = cluster.server.client('test');
        if (!stored) {
          await eventually(() => assert.match(sidecar.log(), /Started provisioner controller/));
          for (const other of others) {
            api.create(resource.claims, other);
            await new Promise(setImmediate); // the server sends meanwhile
          }
        }
        api.create(resource.claims, claim('own', { 'volume.kubernetes.io/storage-provisioner': driverName }));
        await eventually(() => {
          assert.ok(sidecar.running(), sidecar.log().slice(-2000));
          assert.equal(api.list(resource.volumes).length, 1);
        });
      } finally {
        await sidecar.stop('SIGKILL');
      }
    });
  }
});
