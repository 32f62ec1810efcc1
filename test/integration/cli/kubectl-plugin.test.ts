/** `kubectl csi` as a process, with a kubectl that writes down how it was called. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { programFile } from '../../support/program-file.ts';
import { driverName } from '../../support/api-scene.ts';
import { ExplainRig } from '../explain/rig.ts';

const plugin = programFile('kubectl-csi');
const sidecarArgs = [
  '--csi-address',
  '$(ADDRESS)',
  '--timeout=60s',
  '--v=2',
  '--leader-election-namespace=$(NAMESPACE)',
  '--http-endpoint=:8080',
  '--status-page',
];

interface Run {
  code: number;
  stdout: string;
  stderr: string;
}

describe('kubectl csi', () => {
  let rig: ExplainRig;
  let folder: string;
  let environment: NodeJS.ProcessEnv;
  before(async () => {
    rig = await ExplainRig.start();
    folder = await mkdtemp(path.join(tmpdir(), 'kubectl-csi-'));
    const kubeconfig = path.join(folder, 'kubeconfig');
    await writeFile(kubeconfig, rig.kubeconfig());
    const kubectl = path.join(folder, 'kubectl');
    await writeFile(
      kubectl,
      `#!/bin/sh
printf '%s\\n' "$@" > '${folder}/called'
if [ "$1" = port-forward ]; then echo 'Forwarding from 127.0.0.1:34567 -> 8080'; exec sleep 60; fi
exit 2
`,
    );
    await chmod(kubectl, 0o755);
    environment = { ...process.env, KUBECONFIG: kubeconfig, PATH: `${folder}:${process.env['PATH'] ?? ''}` };
    rig.addProvisioner({ holder: 'pod-1_0ab' });
    rig.add('pods', {
      metadata: { name: 'pod-1', namespace: 'driver' },
      spec: {
        nodeName: 'n1',
        containers: [
          { name: 'driver', image: 'none' },
          {
            name: 'csi-provisioner',
            image: 'none',
            args: sidecarArgs,
            env: [
              { name: 'ADDRESS', value: '/csi/csi.sock' },
              { name: 'NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
            ],
          },
        ],
      },
    });
  });
  after(async () => {
    await rig[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  const run = (...args: string[]): Promise<Run> =>
    new Promise((resolve) => {
      execFile(process.execPath, [plugin, ...args], { env: environment }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
      });
    });
  const called = async (): Promise<string[]> =>
    (await readFile(path.join(folder, 'called'), 'utf8')).trim().split('\n');

  test('audit runs in the Pod of the leader, with the flags of its container, and has its exit code', async () => {
    const { code, stderr } = await run('audit', '--output=json', '--delete', 'vol-1', `--driver=${driverName}`);
    assert.equal(code, 2, stderr);
    assert.deepEqual(await called(), [
      ...['exec', '-n', 'driver', 'pod-1', '-c', 'csi-provisioner', '--', '/nodejs/bin/node', '/csi-provisioner.mjs'],
      ...['audit', '--plugin', `--plugin-flag=--driver=${driverName}`],
      ...['--csi-address=/csi/csi.sock', '--timeout=60s', '--leader-election-namespace=driver'],
      ...['--output=json', '--delete', 'vol-1'],
    ]);
  });

  test('open prints the URL of the status page, and ends when it is interrupted', async () => {
    const child = spawn(process.execPath, [plugin, 'open', `--driver=${driverName}`], { env: environment });
    const ended = new Promise((resolve) => child.once('close', resolve));
    for await (const line of createInterface({ input: child.stdout })) {
      assert.equal(line, 'http://127.0.0.1:34567/status');
      child.kill('SIGINT');
    }
    assert.equal(await ended, 0);
    assert.deepEqual(await called(), ['port-forward', '-n', 'driver', 'pod/pod-1', ':8080']);
  });

  test('why explains a claim without any Pod', async () => {
    const { code, stdout } = await run('why', 'ns1/none');
    assert.equal(code, 3);
    assert.match(stdout, /^ns1\/none: unknown: not-found/);
  });

  for (const flag of ['--help', '-h']) {
    test(`journal ${flag} has the flags of the journal`, async () => {
      const { code, stdout } = await run('journal', flag);
      assert.equal(code, 0);
      assert.match(stdout, /^Usage: kubectl csi journal list\|drain\|.*--resume/s);
    });
  }

  for (const args of [[], ['help'], ['--help'], ['-h']]) {
    test(`${args[0] ?? 'no command'} lists the commands`, async () => {
      const { code, stdout } = await run(...args);
      assert.equal(code, 0);
      assert.match(stdout, /^Usage: kubectl csi COMMAND .*\n {2}journal /s);
    });
  }

  test('journal reads the journal beside the Lease of the only driver', async () => {
    const { code, stderr } = await run('journal', 'list');
    assert.equal(code, 3);
    assert.match(stderr, /kubectl csi journal: .* there is no Lease driver\/d-example-com-journal-0/);
  });

  test('journal finds the journal of a driver whose sidecar elects no leader', async () => {
    rig.add('leases', { metadata: { name: 'alone-example-com-journal-0', namespace: 'ns2' }, spec: {} });
    const { code, stdout, stderr } = await run('journal', 'list', '--driver=alone.example.com');
    assert.equal(code, 0, stderr);
    assert.equal(stdout, 'ns2/alone-example-com: open records: 0.\n');
  });

  for (const { args, says } of [
    { args: ['audit', '--driver=other'], says: /there is no Lease of the provisioner of other/ },
    {
      args: ['audit', '--container=main'],
      says: /it has no container main\. Choose one with --container: driver, csi-prov/,
    },
    { args: ['open', '--pod=driver/none'], says: /pods "none" not found/ },
    { args: ['open', '--pod=driver/pod-1', '--container=driver'], says: /it has no --http-endpoint/ },
    { args: ['adit'], says: /unknown command "adit"/ },
  ]) {
    test(`${args.join(' ')} says what is wrong, and calls nothing`, async () => {
      await rm(path.join(folder, 'called'), { force: true });
      const { code, stderr } = await run(...args);
      assert.equal(code, 1);
      assert.match(stderr, says);
      await assert.rejects(called(), { code: 'ENOENT' });
    });
  }

  test('several drivers are named', async () => {
    rig.add('drivers', { metadata: { name: 'second.example.com' }, spec: {} });
    rig.add('leases', { metadata: { name: 'second-example-com', namespace: 'ns2' }, spec: { holderIdentity: 'x' } });
    const { code, stderr } = await run('audit');
    assert.equal(code, 1);
    assert.match(
      stderr,
      /several .*d\.example\.com \(namespace driver\), second\.example\.com \(namespace ns2\)\. Choose one/,
    );
  });
});
