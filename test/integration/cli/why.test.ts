/** `why` as a shell sees it: text, JSON, exit codes, watching. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { Explanation } from '../../../src/explain/explanation.ts';
import { ExplainRig } from '../explain/rig.ts';
import { mainFile, runProgram, type ProgramRun } from './program-run.ts';

describe('csi-provisioner why', () => {
  let folder: string;
  let kubeconfig: string;
  let rig: ExplainRig;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'why-'));
    kubeconfig = path.join(folder, 'kubeconfig');
  });
  after(() => rm(folder, { recursive: true }));
  beforeEach(async () => {
    rig = await ExplainRig.start();
    await writeFile(kubeconfig, rig.kubeconfig());
  });
  afterEach(() => rig[Symbol.asyncDispose]());

  const why = (...args: string[]): Promise<ProgramRun> => runProgram(['why', ...args, `--kubeconfig=${kubeconfig}`]);

  test('prints what holds the claim, what to do and the steps, and ends with code 2', async () => {
    rig.addClass();
    rig.addProvisioner();
    const claim = rig.addClaim();
    rig.addEvent(claim, 'ProvisioningFailed', 'rpc error: code = Internal desc = on \u001b[31mfire', { count: 3 });
    const { code, stdout, stderr } = await why('ns1/c');
    assert.equal(code, 2, stderr);
    assert.equal(stderr, '');
    const lines = stdout.split('\n');
    assert.equal(lines[0], 'ns1/c: stuck: driver-error');
    assert.match(lines[1] ?? '', /^Provisioning failed 3 times /);
    assert.deepEqual(lines.slice(-6, -1), [
      '  ✓ claim        it exists and is Pending',
      '  ✓ class        sc, provisioner d.example.com, Immediate',
      '  ✓ hand-over    kube-controller-manager handed it to d.example.com',
      '  ✓ provisioner  d.example.com: pod-1 leads',
      '  ✗ attempt',
    ]);
    const flowing = stdout.replaceAll(/\s+/g, ' ');
    assert.match(flowing, /Provisioning failed 3 times .* Last error: rpc error: code = Internal desc = on/);
    assert.match(flowing, /What to do: See the log of the driver's container on pod-1, beside the provisioner\./);
    assert.ok(!stdout.includes('\u001b'), 'no control characters of others reach the terminal');
    assert.ok(lines.length <= 24 && lines.every((line) => line.length <= 100), 'it fits a screen');
  });

  test('says on stderr until when it waits while the API server asks for a long pause, and keeps stdout for JSON', async () => {
    rig.addClaim({}, { annotations: {} });
    rig.server.faults.add({
      match: { resource: 'persistentvolumeclaims' },
      action: { type: 'status', code: 429, reason: 'TooManyRequests', message: 'slow\u001b[2Jdown', retryAfter: 60 },
    });
    const child = spawn(process.execPath, [mainFile, 'why', 'ns1/c', '-o', 'json', `--kubeconfig=${kubeconfig}`], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const stdout = text(child.stdout);
    const [line] = (await once(createInterface({ input: child.stderr }), 'line')) as [string];
    assert.match(
      line,
      /^The API server responds 429 \(slow\\u001b\[2Jdown\) and asks for a pause of 60 s; get persistentvolumeclaims is sent again at \d\d:\d\d:\d\d UTC, in 60 s$/,
    );
    child.kill('SIGINT');
    await once(child, 'close');
    assert.equal(child.exitCode, 3);
    assert.equal(await stdout, '');
  });

  test('says nothing of a short pause', async () => {
    rig.addClaim({}, { annotations: {} });
    rig.server.faults.add({
      match: { resource: 'persistentvolumeclaims' },
      action: { type: 'status', code: 429, reason: 'TooManyRequests', message: 'slow down', retryAfter: 1 },
      times: 1,
    });
    const { code, stderr } = await why('ns1/c');
    assert.equal(code, 2);
    assert.equal(stderr, '');
  });

  test('prints JSON in which every field is set', async () => {
    rig.addClaim({}, { annotations: {} });
    const { code, stdout } = await why('c', '-o', 'json');
    assert.equal(code, 2);
    assert.deepEqual(JSON.parse(stdout), {
      object: 'ns1/c',
      verdict: 'stuck',
      cause: 'class-not-found',
      message: 'StorageClass sc does not exist. The cluster has no StorageClass.',
      cure: 'Create the class, or recreate the claim with another class',
      steps: [
        { step: 'claim', state: 'ok', detail: 'it exists and is Pending' },
        { step: 'class', state: 'stuck', detail: 'StorageClass sc does not exist. The cluster has no StorageClass.' },
      ],
    });
  });

  test('ends with the code of its verdict', async () => {
    rig.addClaim({ volumeName: 'v' }, { phase: 'Bound' });
    rig.addVolume('v', { claimRef: { namespace: 'ns1', name: 'c' } }, 'Bound');
    assert.equal((await why('ns1/c')).code, 0);
    assert.equal((await why('c', '-n', 'ns1')).code, 0);
    assert.equal((await why('pv/v')).code, 0);
    assert.equal((await why('ns1/other')).code, 3);
    rig.addClass({ volumeBindingMode: 'WaitForFirstConsumer' });
    rig.addClaim({}, { name: 'waits', annotations: {} });
    assert.equal((await why('ns1/waits')).code, 1);
  });

  test('says that the API server does not answer, with code 3', async () => {
    await rig.server.close();
    const { code, stdout } = await why('ns1/c');
    assert.equal(code, 3);
    assert.match(
      stdout,
      /^ns1\/c: unknown\nWhat it waits for cannot be seen: could not get persistentvolumeclaims in namespace ns1: /,
    );
  });

  for (const { code, body } of [
    { code: 404, body: '' },
    { code: 403, body: '<html>Who are you?</html>' },
    { code: 200, body: '{}' },
  ]) {
    test(`takes answer ${code} ${JSON.stringify(body)} of a proxy as no proof about the claim`, async (t) => {
      const proxy = createServer((_request, response) => response.writeHead(code).end(body)).listen(0, '127.0.0.1');
      t.after(() => proxy.close());
      await once(proxy, 'listening');
      const { port } = proxy.address() as AddressInfo;
      await writeFile(kubeconfig, rig.kubeconfig().replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${port}`));
      const run = await why('ns1/c', '-o', 'json');
      assert.equal(run.code, 3);
      const { verdict, cause, message } = JSON.parse(run.stdout) as Explanation;
      assert.deepEqual({ verdict, cause }, { verdict: 'unknown', cause: null });
      assert.match(message, /is not from an API server/);
    });
  }

  test('understands names as kubectl does', async () => {
    rig.addClaim({ volumeName: 'v' }, { phase: 'Bound' });
    rig.addVolume('v', { claimRef: { namespace: 'ns1', name: 'c' } }, 'Bound');
    for (const args of [['pvc/c'], ['pvc/c', '-n', 'ns1'], ['c', '-n', ''], ['pv/v', '-n', 'ns2']]) {
      const { code, stdout } = await why(...args);
      assert.equal(code, 0, `${args.join(' ')}: ${stdout}`);
    }
    assert.equal((await why('pvc/c', '-n', 'ns2')).code, 3);
    assert.match((await why('ns1/c', '-n', 'ns2')).stderr, /"ns1\/c" names a namespace already: omit --namespace/);
  });

  test('watches a claim that is being deleted, and ends with 0 once it is gone', async () => {
    const claim = rig.addClaim({ volumeName: 'v' }, { phase: 'Bound', finalizers: ['example.com/backup'] });
    rig.delete('claims', 'c', 'ns1');
    const child = spawn(process.execPath, [mainFile, 'why', 'ns1/c', '--watch', `--kubeconfig=${kubeconfig}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'close');
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line.replace(/^\d\d:\d\d:\d\d /, ''));
      const { metadata, spec } = claim;
      if (lines.length === 1)
        rig.change('claims', { metadata: { ...metadata, resourceVersion: undefined, finalizers: [] }, spec } as never);
    }
    await ended;
    assert.match(lines[0] ?? '', /^ns1\/c: (waiting|stuck) \(deleting\): /);
    assert.match(lines[1] ?? '', /^ns1\/c: unknown \(not-found\): /);
    assert.equal(child.exitCode, 0);
  });

  test('watches with a line for each change, and ends once the claim is bound', async () => {
    rig.addClass();
    rig.addProvisioner();
    const claim = rig.addClaim();
    const child = spawn(process.execPath, [mainFile, 'why', 'ns1/c', '--watch', `--kubeconfig=${kubeconfig}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'close');
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line.replace(/^\d\d:\d\d:\d\d /, ''));
      if (lines.length === 1) rig.addEvent(claim, 'ProvisioningFailed', 'rpc error: code = Internal desc = on fire');
      if (lines.length === 2) {
        const { metadata, spec } = claim;
        rig.api.updateStatus({ group: '', version: 'v1', plural: 'persistentvolumeclaims' }, {
          metadata: { ...metadata, resourceVersion: undefined },
          spec,
          status: { phase: 'Bound' },
        } as never);
      }
    }
    await ended;
    assert.equal(child.exitCode, 0);
    assert.match(lines[0] ?? '', /^ns1\/c: waiting \(in-progress\): /);
    assert.match(lines[1] ?? '', /^ns1\/c: stuck \(driver-error\): .*on fire$/);
    assert.match(lines[2] ?? '', /^ns1\/c: bound: The claim is bound to PersistentVolume/);
    assert.equal(lines.length, 3);
  });

  test('ends with the code of what it saw last when the watching is interrupted', async () => {
    rig.addClaim({}, { annotations: {} });
    const child = spawn(
      process.execPath,
      [mainFile, 'why', 'ns1/c', '-w', '-o', 'json', `--kubeconfig=${kubeconfig}`],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const ended = once(child, 'close');
    const seen: { cause: string }[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      seen.push(JSON.parse(line) as { cause: string });
      child.kill('SIGINT');
    }
    await ended;
    assert.equal(child.exitCode, 2);
    assert.deepEqual(
      seen.map(({ cause }) => cause),
      ['class-not-found'],
    );
  });
});
