import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { connect, KubeClient, persistentVolumes } from '../../src/index.ts';
import { programFile } from '../support/program-file.ts';
import { claim, paths, storageClass, volume } from './api/api-fixture.ts';
import type { Body } from './api/api-fixture.ts';

const main = programFile('sandbox');

function startProcess(t: TestContext, ...args: string[]): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, [main, ...args]);
  t.after(() => child.kill('SIGKILL'));
  return child;
}

async function fetchBody(url: string, init?: RequestInit): Promise<Body> {
  const response = await fetch(url, init);
  assert.ok(response.ok, `${url}: ${response.status}`);
  return (await response.json()) as Body;
}

describe('the sandbox process', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`says when it is ready and ends cleanly with ${signal}`, async (t) => {
      const child = startProcess(t, '--nodes=3');
      const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
      const ready = JSON.parse(line) as { url: string; kubeconfig: string; pid: number };
      assert.equal(ready.pid, child.pid);
      assert.ok((await readFile(ready.kubeconfig, 'utf8')).includes(`server: ${ready.url}`));
      const nodes = await fetchBody(`${ready.url}/api/v1/nodes`);
      assert.deepEqual(
        nodes.items.map(({ metadata }) => [metadata.name, metadata.labels['topology.kubernetes.io/zone']]),
        [
          ['node-1', 'a'],
          ['node-2', 'b'],
          ['node-3', 'a'],
        ],
      );
      const watch = await fetch(`${ready.url}/api/v1/nodes?watch=true`);
      child.kill(signal);
      const [code] = (await once(child, 'exit')) as [number | null];
      assert.equal(code, 0);
      assert.equal((await watch.text()).trim().split('\n').length, 3, 'the open watch ended cleanly');
      assert.equal(existsSync(ready.kubeconfig), false);
    });
  }

  test('names each right that the account of a manifest lacks, once', async (t) => {
    const manifest = path.join(import.meta.dirname, '../../provisioners/hostpath-provisioner/rbac.yaml');
    const child = startProcess(t, '--nodes=0', `--rbac-manifest=${manifest}`);
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const next = async (): Promise<unknown> => JSON.parse((await lines.next()).value!) as unknown;
    const { accountKubeconfig } = (await next()) as { accountKubeconfig: string };
    await using transport = connect({ kubeconfig: accountKubeconfig });
    const client = new KubeClient({ transport, fieldManager: 'test' });
    await client.list(persistentVolumes);
    for (let time = 0; time < 2; time++) await assert.rejects(client.get(persistentVolumes, { name: 'a' }));
    const lease = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease', namespaced: true };
    await assert.rejects(client.delete(lease, { namespace: 'default', name: 'a' }));
    assert.deepEqual(await next(), { forbidden: { verb: 'get', group: '', resource: 'persistentvolumes' } });
    assert.deepEqual(await next(), {
      forbidden: { verb: 'delete', group: 'coordination.k8s.io', resource: 'leases', namespace: 'default' },
    });
    child.kill('SIGTERM');
    await once(child, 'exit');
    assert.equal(existsSync(accountKubeconfig), false);
  });

  test('a bad flag is told in one line and ends with 2', async (t) => {
    const child = startProcess(t, '--nodes', 'many');
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit') as Promise<[number]>]);
    assert.equal(code, 2);
    assert.equal(stderr, 'invalid value: --nodes "many": must be a whole number from 0 to 1000\n');
  });

  test('a port that is taken is told in one line and ends with 1', async (t) => {
    await using sandbox = await Sandbox.start({ nodes: 0 });
    const child = startProcess(t, `--port=${sandbox.port}`);
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit') as Promise<[number]>]);
    assert.equal(code, 1);
    assert.match(stderr, /^listen EADDRINUSE.*\n$/);
  });
});

describe('Sandbox', () => {
  test('a claim is bound once its volume is made', async () => {
    await using sandbox = await Sandbox.start();
    const { url } = sandbox;
    const post = (path: string, body: unknown): Promise<Body> =>
      fetchBody(url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    await post(paths.classes, storageClass('fast'));
    const { metadata } = await post(paths.claims, claim('a', { storageClassName: 'fast' }));
    const claimRef = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      namespace: 'default',
      name: 'a',
      uid: metadata.uid,
    };
    await post(paths.volumes, volume(`pvc-${metadata.uid}`, { storageClassName: 'fast', claimRef }));
    const watch = await fetch(`${url}${paths.claims}?watch=true&timeoutSeconds=10`);
    assert.ok(watch.body);
    let bound = false;
    for await (const line of createInterface(Readable.fromWeb(watch.body))) {
      bound = (JSON.parse(line) as { object: Body }).object.status.phase === 'Bound';
      if (bound) break;
    }
    assert.ok(bound);
  });

  test('closing leaves nothing behind, and twice is once', async () => {
    const sandbox = await Sandbox.start();
    await sandbox.close();
    await sandbox.close();
    await assert.rejects(fetch(`${sandbox.url}/healthz`), { message: 'fetch failed' });
    assert.equal(existsSync(sandbox.kubeconfig), false);
  });
});
