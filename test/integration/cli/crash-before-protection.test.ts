/** The program is killed between the record of a clone and the protection of its source. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { cloningProtectionFinalizer } from '../../../src/csi/sources/finalizers.ts';
import { storageProvisionerKey } from '../../../src/provision/objects.ts';
import { eventually } from '../../support/eventually.ts';
import { DriverFailure, RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { claimsRef, SandboxApi } from '../../support/sandbox-api.ts';
import { type StartedProcess, startProcess } from '../../support/started-process.ts';
import { mainFile } from './program-run.ts';

const driverName = 'd.example.com';
const source = { namespace: 'ns1', name: 'src' };
const volumesRef = { group: '', version: 'v1', plural: 'persistentvolumes' };
const classesRef = { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' };
const leasesRef = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };
const eventsRef = { group: '', version: 'v1', plural: 'events' };

describe('a sidecar that is killed between the record of a clone and the protection of its source', () => {
  let api: SandboxApi;
  let driver: RecordingDriver;
  let sidecar: StartedProcess;

  const start = async (): Promise<void> => {
    const { url } = api;
    const flags = [`--csi-address=${driver.socketPath}`, `--master=${url}`, '--retry-interval-start=100ms', '-v=5'];
    const env = { KUBECONFIG: undefined, POD_NAMESPACE: 'ns2' };
    sidecar = await startProcess({ program: process.execPath, args: [mainFile, ...flags], env });
  };
  const waited = <T>(check: () => T): Promise<T> =>
    eventually(check, { hopeless: () => (sidecar.running() ? undefined : `the sidecar has ended\n${sidecar.log()}`) });
  const finalizers = (): string[] => api.own.get(claimsRef, source)?.metadata.finalizers ?? [];
  const records = (): string => JSON.stringify(api.own.list(leasesRef, { namespace: 'ns2' }));

  before(async () => {
    api = await SandboxApi.start();
    driver = await RecordingDriver.start({ controller: ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME'] });
    api.own.create(classesRef, { metadata: { name: 'sc' }, provisioner: driverName, reclaimPolicy: 'Delete' });
    const { uid = '' } = api.addClaim({ name: 'src' }, { volumeName: 'pv-src' }, 'Bound').metadata;
    const volume = api.own.create(volumesRef, {
      metadata: { name: 'pv-src' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        storageClassName: 'sc',
        csi: { driver: driverName, volumeHandle: 'vol-src' },
        claimRef: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', ...source, uid },
      },
    });
    api.own.updateStatus(volumesRef, { ...volume, status: { phase: 'Bound' } });
  });
  after(async () => {
    await sidecar.stop('SIGKILL');
    await driver[Symbol.asyncDispose]();
    await api[Symbol.asyncDispose]();
  });

  /** Leaves the record of a new claim's volume, of which the driver knows nothing. */
  const crash = async (name: string): Promise<string> => {
    const fault = api.server.faults.add({
      match: { verb: 'update', resource: 'persistentvolumeclaims', name: 'src' },
      action: { type: 'delay', ms: 3_600_000 },
    });
    await start();
    const calls = driver.callsOf('CreateVolume').length;
    const updates = (): number =>
      api.server.requestLog.entries({ verb: 'update', path: /\/persistentvolumeclaims\/src$/ }).length;
    const before = updates();
    const { uid = '' } = api.addClaim(
      { name, annotations: { [storageProvisionerKey]: driverName } },
      { dataSource: { kind: 'PersistentVolumeClaim', name: 'src' } },
      'Pending',
    ).metadata;
    await waited(() => assert.ok(updates() > before));
    assert.ok(records().includes(uid), 'the record is there');
    await sidecar.stop('SIGKILL');
    fault.remove();
    assert.equal(driver.callsOf('CreateVolume').length, calls);
    assert.equal(finalizers().includes(cloningProtectionFinalizer), false);
    return uid;
  };

  test('its successor protects the source before the driver copies it', async () => {
    const uid = await crash('one');
    const seen: string[][] = [];
    driver.next('CreateVolume', ({ request }) => {
      seen.push(finalizers());
      return {
        volume: { volume_id: 'vol-1', capacity_bytes: 1 << 30, content_source: request['volume_content_source'] },
      };
    });
    await start();
    const volume = await waited(() => {
      const found = api.own.get(volumesRef, { name: `pvc-${uid}` });
      assert.ok(found);
      return found;
    });
    assert.deepEqual((volume['spec'] as { csi: object }).csi, {
      ...(volume['spec'] as { csi: object }).csi,
      volumeHandle: 'vol-1',
    });
    assert.equal(seen.length, 1);
    assert.ok(seen[0]?.includes(cloningProtectionFinalizer));
    await sidecar.stop('SIGKILL');
  });

  test('a source that went meanwhile is reported, and nothing is deleted, also when the claim goes', async () => {
    const live = structuredClone(api.own.get(claimsRef, source))!;
    api.own.update(claimsRef, { ...live, metadata: { ...live.metadata, finalizers: [] } }); // its protection is over
    const uid = await crash('two');
    api.own.delete(claimsRef, source);
    assert.equal(api.own.get(claimsRef, source), undefined);
    driver.always('CreateVolume', new DriverFailure(status.NOT_FOUND, 'no volume vol-src'));
    await start();
    await waited(() => assert.match(records(), /\\"phase\\":\\"stuck\\"/));
    await waited(() =>
      assert.match(JSON.stringify(api.own.list(eventsRef, { namespace: 'ns1' })), /may have left a volume.*vol-src/),
    );
    api.own.delete(claimsRef, { namespace: 'ns1', name: 'two' });
    const calls = driver.callsOf('CreateVolume').length;
    await waited(() => assert.ok(driver.callsOf('CreateVolume').length > calls)); // the revoke looks for it
    await waited(() => assert.match(sidecar.log(), /A volume may be left at the backend and needs an operator/));
    assert.ok(records().includes(uid));
    assert.deepEqual(driver.callsOf('DeleteVolume'), []);
  });
});
