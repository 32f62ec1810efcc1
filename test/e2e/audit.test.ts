/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, describe, test } from 'node:test';
import { programFile } from '../support/program-file.ts';
import { openScene, type Scene } from '../support/scene.ts';
import { connectDriver } from '../support/driver-client.ts';

const program = programFile('csi-provisioner');

interface Report {
  findings: { state: string; volumeId?: string; persistentVolumes?: string[]; record?: string; detail: string }[];
}

describe('an audit with the rights of the sidecar', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene({ sidecarFlags: ['--timeout=2s'] });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  async function audit(...flags: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const child = spawn(
      process.execPath,
      [
        ...[program, 'audit', `--csi-address=${scene.driver.address}`],
        ...[`--kubeconfig=${await scene.cluster.sidecarKubeconfig()}`, '--second-look=1s', ...flags],
      ],
      { env: { ...process.env, KUBECONFIG: undefined, POD_NAMESPACE: scene.cluster.sidecarNamespace } },
    );
    child.stdin.end();
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { code: child.exitCode, stdout, stderr };
  }

  /** What the audit says about these volumes and claims. */
  async function report(): Promise<Report & { code: number | null }> {
    const { code, stdout, stderr } = await audit('-o', 'json');
    assert.notEqual(stdout, '', stderr);
    return { ...(JSON.parse(stdout) as Report), code };
  }

  const secret = { name: 'credentials', stringData: { password: 'hush' } };
  const createSecret = (): Promise<unknown> =>
    scene.admin.core.createNamespacedSecret({
      namespace: scene.namespace,
      body: { metadata: { name: secret.name }, stringData: secret.stringData },
    });

  test('is clean after a claim was served', async () => {
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    await scene.bound(metadata?.name ?? '');
    await scene.eventually(async () => {
      const { code, findings } = await report();
      assert.deepEqual(findings, []);
      assert.equal(code, 0);
    });
  });

  test('lists a volume that nobody knows, and does not delete it', async () => {
    using driver = connectDriver(scene.driver.address);
    const id = await driver.createVolume('of-somebody-else');
    const { code, findings } = await report();
    assert.deepEqual(
      findings.map(({ state, volumeId }) => [state, volumeId]),
      [['unexplained', id]],
    );
    assert.equal(code, 0);
    const refused = await audit('--delete', id, '--yes');
    assert.equal(refused.code, 1);
    assert.match(refused.stdout, /no record of the journal names it/);
    assert.ok((await scene.driver.volumeIds()).includes(id));
    await driver.deleteVolume(id);
  });

  test('finds a PersistentVolume whose storage is gone', async () => {
    using driver = connectDriver(scene.driver.address);
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    const { volume } = await scene.bound(metadata?.name ?? '');
    await driver.deleteVolume(volume.spec?.csi?.volumeHandle ?? '');
    const { code, findings } = await report();
    assert.equal(code, 2);
    assert.deepEqual(
      findings.map(({ state, persistentVolumes }) => [state, persistentVolumes]),
      [['lost', [volume.metadata?.name]]],
    );
    await scene.deleteClaim(metadata?.name ?? '');
    await scene.volumeGone(volume.metadata?.name ?? '');
  });

  test('deletes the volume of a stuck record, which the sidecar then discards', async () => {
    await createSecret();
    const parameters = {
      'csi.storage.k8s.io/provisioner-secret-name': secret.name,
      'csi.storage.k8s.io/provisioner-secret-namespace': '${pvc.namespace}',
    };
    await scene.driver.setFaults([
      { method: 'CreateVolume', hold: true, after: true },
      { method: 'DeleteVolume', code: 'INTERNAL', message: 'the backend is busy' },
    ]);
    const before = await scene.driver.volumeIds();
    const claim = await scene.createClaim({ className: await scene.createClass({ parameters }) });
    await scene.eventually(async () => assert.equal((await scene.driver.volumeIds()).length, before.length + 1));
    const [id = ''] = (await scene.driver.volumeIds()).filter((each) => !before.includes(each));
    await scene.deleteClaim(claim.metadata?.name ?? '');
    const { message = '' } = await scene.event(claim, 'ProvisioningFailed');
    assert.match(message, /DeadlineExceeded/);
    await scene.driver.setFaults([{ method: 'DeleteVolume', code: 'INTERNAL', message: 'the backend is busy' }]);
    await scene.eventually(async () => {
      const calls = await scene.driver.calls('DeleteVolume');
      assert.ok(calls.some(({ request }) => request.volume_id === id));
    });
    await scene.sidecar.stop(); // which keeps in memory what it has read
    await scene.admin.core.deleteNamespacedSecret({ namespace: scene.namespace, name: secret.name });
    await scene.startSidecar();
    await scene.eventually(async () => {
      const { findings, code } = await report();
      const found = findings.map(({ state, volumeId, record }) => [state, volumeId, record]);
      assert.deepEqual(found, [['leaked', id, claim.metadata?.uid]]);
      assert.equal(code, 2);
    });
    const withoutSecret = await audit('--delete', id, '--yes');
    assert.match(withoutSecret.stdout, /^refused: .* its Secret .* is gone/m);
    await createSecret();
    await scene.sidecar.stop(); // which would delete the volume as well, once it tries again
    await scene.driver.setFaults([]);
    const { code, stdout, stderr } = await audit('--delete', id, '--yes');
    assert.match(stdout, new RegExp(`^deleted: ${id}: `, 'm'), stderr);
    assert.equal(code, 0);
    assert.doesNotMatch(stdout + stderr, /hush/);
    assert.ok(!(await scene.driver.volumeIds()).includes(id));
    await scene.startSidecar();
    await scene.eventually(async () => assert.deepEqual((await report()).findings, []));
  });
});
