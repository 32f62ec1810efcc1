/** A driver that is stopped amid its work, and goes on after its calls were given up. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { storageProvisionerKey } from '../../../src/provision/objects.ts';
import { eventually } from '../../support/eventually.ts';
import { claimsRef, SandboxApi } from '../../support/sandbox-api.ts';
import { startSidecar } from '../../support/sidecar-process.ts';
import { startAnnounced } from '../../support/started-process.ts';

const driverName = 'd.example.com';
const classesRef = { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' };
const driverFile = join(import.meta.dirname, '../../support/fakes/holding-driver.ts');
const leasesRef = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };

/** `--timeout`, in milliseconds. */
const timeoutMs = 2000;

describe('a volume whose CreateVolume goes on after the driver had stalled', () => {
  test('is deleted, although the claim was deleted and the call given up long before', async () => {
    await using opened = new AsyncDisposableStack();
    const api = opened.use(await SandboxApi.start());
    const folder = await mkdtemp(join(tmpdir(), 'stall-'));
    opened.defer(() => rm(folder, { recursive: true }));
    const { process: driver } = await startAnnounced({ program: process.execPath, args: [driverFile, folder] });
    opened.defer(() => driver.stop('SIGKILL'));
    api.own.create(classesRef, { metadata: { name: 'sc' }, provisioner: driverName, reclaimPolicy: 'Delete' });
    const sidecar = await startSidecar({
      csiAddress: `unix://${join(folder, 'csi.sock')}`,
      kubeconfig: '',
      namespace: 'ns1',
      flags: [`--master=${api.url}`, `--timeout=${timeoutMs}ms`, '-v=5'],
    });
    opened.defer(() => sidecar.stop());
    const sent = (): number => sidecar.log().split('"GRPC call" method="/csi.v1.Controller/CreateVolume"').length - 1;
    const calls = (): Promise<string> => readFile(join(folder, 'calls'), 'utf8');

    api.addClaim({ name: 'claim', annotations: { [storageProvisionerKey]: driverName } }, { volumeMode: 'Filesystem' });
    await eventually(async () => assert.match(await calls(), /^CreateVolume holds$/m));
    await eventually(() => assert.match(sidecar.log(), /"GRPC response".*code="DeadlineExceeded"/));
    deleteClaim(api, 'claim');
    // Time is what is tested: had the driver read the call, the wait for it would end after 1.5 times that of a call.
    await delay(2 * timeoutMs);
    assert.equal(sent(), 1, 'nobody waits for the storage: while the driver reads nothing, nothing is sent');
    process.kill(driver.pid, 'SIGCONT');
    await writeFile(join(folder, 'go-on'), '');
    await eventually(async () => assert.match(await calls(), /^CreateVolume ends$[^]*^DeleteVolume$/m));
    await eventually(() => assert.deepEqual(recordsOf(api), []));
    assert.deepEqual(await readdir(join(folder, 'volumes')), []);
  });
});

/** It is gone at once: its finalizer is that of a controller that does not run here. */
function deleteClaim(api: SandboxApi, name: string): void {
  const claim = structuredClone(api.own.get(claimsRef, { namespace: 'ns1', name }));
  assert.ok(claim);
  const { finalizers: _finalizers, ...metadata } = claim.metadata;
  api.own.update(claimsRef, { ...claim, metadata });
  api.own.delete(claimsRef, { namespace: 'ns1', name });
}

/** Keys of the records that are open in the journal. */
function recordsOf(api: SandboxApi): string[] {
  return api.own
    .list(leasesRef)
    .flatMap(({ metadata }) => Object.keys(metadata.annotations ?? {}))
    .filter((key) => /^csi-provisioner\.journal\/[\da-f]{8}-/.test(key));
}
