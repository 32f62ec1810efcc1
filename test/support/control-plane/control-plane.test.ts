import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../eventually.ts';
import { patienceMs } from '../patience.ts';
import { apiRequest } from './api-request.ts';
import { readAuditLog } from './audit-log.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';

const patience = `--timeout=${patienceMs}ms`;

describe('a control plane', () => {
  let plane: ControlPlane;
  before(async () => {
    plane = await startControlPlane({ auditLog: true, users: [{ name: 'alice', groups: ['readers'] }] });
  });
  after(() => plane.stop());

  test('holds users to their rights', async () => {
    const kubeconfig = await plane.kubeconfigFor('alice');
    await assert.rejects(plane.kubectl(['get', 'pods', `--kubeconfig=${kubeconfig}`]), /forbidden: User "alice"/i);
    await plane.kubectl(['create', 'clusterrole', 'pod-lister', '--verb=list', '--resource=pods']);
    await plane.kubectl(['create', 'clusterrolebinding', 'readers', '--clusterrole=pod-lister', '--group=readers']);
    const canList = ['auth', 'can-i', 'list', 'pods', `--kubeconfig=${kubeconfig}`];
    // The authoriser hears of roles by watch.
    await eventually(async () => assert.equal((await plane.kubectl(canList)).trim(), 'yes'));
  });

  test('gives service accounts a token in their namespace', async () => {
    await plane.kubectl(['create', 'namespace', 'storage']);
    await plane.kubectl(['create', 'serviceaccount', 'csi-provisioner', '-n', 'storage']);
    const kubeconfig = await plane.kubeconfigFor('system:serviceaccount:storage:csi-provisioner');
    const who = await plane.kubectl(['auth', 'whoami', '-o', 'json', `--kubeconfig=${kubeconfig}`]);
    assert.match(who, /"username": "system:serviceaccount:storage:csi-provisioner"/);
    await assert.rejects(plane.kubeconfigFor('bob'), /bob is neither/);
  });

  test('binds a claim to a volume', async () => {
    const volume = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'by-hand' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'manual',
        csi: { driver: 'none.example.com', volumeHandle: 'v1' },
      },
    };
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'by-hand' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'manual',
        resources: { requests: { storage: '1Gi' } },
      },
    };
    await plane.kubectl(['create', '-f', '-'], { input: JSON.stringify(volume) });
    await plane.kubectl(['create', '-f', '-'], { input: JSON.stringify(claim) });
    await plane.kubectl(['wait', 'pvc/by-hand', '--for=jsonpath={.status.phase}=Bound', patience]);
  });

  test('keeps its objects and its certificate over a restart of the API server', async () => {
    const access = { url: plane.url, ca: plane.ca, token: plane.adminToken };
    await plane.killApiServer();
    await assert.rejects(apiRequest(access, 'GET', '/readyz'), { code: 'ECONNREFUSED' });
    await plane.restartApiServer();
    assert.equal((await apiRequest(access, 'GET', '/api/v1/persistentvolumes/by-hand')).status, 200);
  });

  test('records who asked for what', async () => {
    const users = new Set<string>();
    for await (const event of readAuditLog(plane.auditLogFile!)) users.add(event.user.username);
    for (const user of ['admin', 'alice', 'system:kube-controller-manager', 'system:kube-scheduler']) {
      assert.ok(users.has(user), `${user} is missing in the audit log`);
    }
  });

  test('leaves an unprovisioned claim alone without its controller manager', async () => {
    await plane.stopControllerManager();
    await plane.kubectl(['delete', 'pvc', 'by-hand', '--wait=false']);
    await delay(500);
    const claim = await plane.kubectl(['get', 'pvc', 'by-hand', '-o', 'name']);
    assert.equal(claim.trim(), 'persistentvolumeclaim/by-hand'); // nobody takes its protection off
    await plane.startControllerManager();
    await plane.kubectl(['wait', 'pvc/by-hand', '--for=delete', patience]);
  });

  test('leaves nothing behind', async () => {
    await plane.stop();
    assert.equal(existsSync(plane.folder), false);
    await plane.stop();
  });
});
