/** The program as it is shipped, where the API server is only reached through a proxy. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { Sandbox } from '../../../sandbox/sandbox.ts';
import { startConnectProxy } from '../../support/connect-proxy.ts';
import { startDriver } from '../../support/driver-process.ts';
import { eventually } from '../../support/eventually.ts';
import { startSidecar } from '../../support/sidecar-process.ts';
import { startSocksProxy } from '../../support/socks-proxy.ts';

test('the sidecar starts behind a proxy, and goes on when that has refused tunnels for a while', async () => {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), 'proxy-'));
  opened.defer(() => rm(folder, { recursive: true }));
  const sandbox = opened.use(await Sandbox.start({ rbac: true, nodes: 0 }));
  const proxy = opened.use(await startConnectProxy());
  const driver = await startDriver({ driverName: 'proxied.example.com', folder });
  opened.defer(() => driver.stop());
  const kubeconfig = path.join(folder, 'kubeconfig');
  const text = await readFile(sandbox.kubeconfig, 'utf8');
  await writeFile(kubeconfig, text.replace(/^( +)server: .*$/m, `$&\n$1proxy-url: ${proxy.url}`), { mode: 0o600 });
  const sidecar = await startSidecar({
    csiAddress: driver.address,
    kubeconfig,
    namespace: 'default',
    flags: ['--retry-interval-start=250ms', '--retry-interval-max=1s'],
  });
  opened.defer(() => sidecar.stop());
  const api = sandbox.api.client('test');
  const claims = { group: '', version: 'v1', plural: 'persistentvolumeclaims' };
  api.create(
    { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' },
    { metadata: { name: 'proxied' }, provisioner: driver.driverName },
  );
  const createClaim = (name: string): void => {
    api.create(claims, {
      metadata: { namespace: 'default', name },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: 'proxied',
      },
    });
  };
  const isBound = (name: string): Promise<void> =>
    eventually(
      () => {
        const { status } = api.get(claims, { namespace: 'default', name }) as { status?: { phase?: string } };
        assert.equal(status?.phase, 'Bound', sidecar.log());
      },
      { hopeless: () => (sidecar.running() ? undefined : `the sidecar has ended\n${sidecar.log()}`) },
    );
  createClaim('first');
  await isBound('first');
  proxy.refuse(502);
  proxy.closeTunnels();
  await eventually(() => assert.match(sidecar.log(), /Proxy response \(502\)/));
  createClaim('second');
  proxy.refuse();
  await isBound('second');
});

test('the sidecar starts behind a SOCKS proxy that wants a password, with a kubeconfig that merges maps', async () => {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), 'socks-'));
  opened.defer(() => rm(folder, { recursive: true }));
  const sandbox = opened.use(await Sandbox.start({ rbac: true, nodes: 0 }));
  const proxy = opened.use(await startSocksProxy('jo:p@ss'));
  const driver = await startDriver({ driverName: 'socks.example.com', folder });
  opened.defer(() => driver.stop());
  const kubeconfig = path.join(folder, 'kubeconfig');
  const text = await readFile(sandbox.kubeconfig, 'utf8');
  const merged = text.replace(/^( +)server: /m, `$1<<: { proxy-url: 'socks5://jo:p%40ss@${proxy.host}' }\n$&`);
  assert.notEqual(merged, text);
  await writeFile(kubeconfig, merged, { mode: 0o600 });
  const sidecar = await startSidecar({ csiAddress: driver.address, kubeconfig, namespace: 'default' });
  opened.defer(() => sidecar.stop());
  await eventually(() => assert.match(sidecar.log(), /Started provisioner controller/), {
    hopeless: () => (sidecar.running() ? undefined : `the sidecar has ended\n${sidecar.log()}`),
  });
  assert.ok(proxy.tunnels.length > 0);
});
