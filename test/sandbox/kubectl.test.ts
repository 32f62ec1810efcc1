import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { kubeconfigText } from '../../sandbox/kubeconfig.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { eventually } from '../support/eventually.ts';
import { patienceMs } from '../support/patience.ts';
import { claim, paths, snapshot, startApi, storageClass, volume } from './api/api-fixture.ts';
import type { Api, Draft } from './api/api-fixture.ts';

const deploy = join(import.meta.dirname, '../../deploy');
const overlays = readdirSync(join(deploy, 'overlays')).map((name) => `overlays/${name}`);
const claims = { group: '', version: 'v1', plural: 'persistentvolumeclaims' };
const kubectl = findKubectl();
const options = { skip: kubectl === undefined ? 'no kubectl in KUBE_BIN_DIR or the kube-bin cache folder' : false };

/** The newest kubectl among the programs of the real control plane. */
function findKubectl(): string | undefined {
  const { KUBE_BIN_DIR: given, XDG_CACHE_HOME: cache = join(homedir(), '.cache') } = process.env;
  const root = join(cache, 'kube-bin');
  const cached = existsSync(root)
    ? readdirSync(root)
        .sort()
        .map((version) => join(root, version))
    : [];
  return [...cached, given ?? '']
    .map((folder) => join(folder, 'kubectl'))
    .findLast((path) => path !== 'kubectl' && existsSync(path));
}

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Shell {
  readonly api: Api;
  readonly start: (...args: string[]) => ChildProcessWithoutNullStreams;
  readonly run: (...args: string[]) => Promise<Run>;
  /** Writes the objects into a file for `-f`. */
  readonly file: (...objects: Draft[]) => Promise<string>;
}

/** A server, a kubeconfig for it and a cache of its own: kubectl's outlives a server on the same port. */
async function startShell(t: TestContext): Promise<Shell> {
  const api = await startApi(t);
  const folder = await mkdtemp(join(tmpdir(), 'kubectl-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const kubeconfig = join(folder, 'kubeconfig');
  await writeFile(kubeconfig, kubeconfigText({ url: api.url }));
  let files = 0;
  const start: Shell['start'] = (...args) => {
    const child = spawn(kubectl ?? '', ['--kubeconfig', kubeconfig, '--cache-dir', join(folder, 'cache'), ...args]);
    child.stdin.end();
    t.after(() => child.kill());
    return child;
  };
  return {
    api,
    start,
    async run(...args) {
      const child = start(...args);
      const exited = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
      const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
      return { code: await exited, stdout, stderr };
    },
    async file(...objects) {
      const path = join(folder, `${files++}.yaml`);
      await writeFile(path, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
      return path;
    },
  };
}

/** Waits until the server has answered a watch of the claims. */
async function watched(api: Api): Promise<void> {
  await eventually(() => assert.ok(api.server.requestLog.entries({ verb: 'watch', status: 200 }).length > 0));
}

describe('kubectl', options, () => {
  test('version names the server', async (t) => {
    const { run } = await startShell(t);
    const { code, stdout } = await run('version');
    assert.equal(code, 0);
    assert.match(stdout, /Server Version: v1\.\d+\.\d+\+embedded/);
  });

  test('api-resources lists what is served, by aggregated discovery', async (t) => {
    const { api, run } = await startShell(t);
    const { code, stdout } = await run('api-resources');
    assert.equal(code, 0);
    assert.match(stdout, /^persistentvolumeclaims\s+pvc\s+v1\s+true\s+PersistentVolumeClaim$/m);
    assert.match(stdout, /^volumesnapshots\s+vs\s+snapshot.storage.k8s.io\/v1\s+true\s+VolumeSnapshot$/m);
    assert.deepEqual(
      api.server.requestLog.entries().map(({ path }) => path),
      ['/api', '/apis'],
    );
  });

  test('a second apply of the same changes nothing and sends no patch', async (t) => {
    const { api, run, file } = await startShell(t);
    const path = await file(claim('a'));
    assert.equal((await run('apply', '-f', path)).stdout, 'persistentvolumeclaim/a created\n');
    assert.equal((await run('apply', '-f', path)).stdout, 'persistentvolumeclaim/a unchanged\n');
    assert.deepEqual(api.server.requestLog.entries({ method: 'PATCH' }), []);
    const changed = await file({ ...claim('a'), metadata: { name: 'a', labels: { x: 'y' } } });
    assert.equal((await run('apply', '-f', changed)).stdout, 'persistentvolumeclaim/a configured\n');
    const [patch] = api.server.requestLog.entries({ method: 'PATCH' });
    assert.equal(patch?.contentType, 'application/strategic-merge-patch+json');
    assert.equal(patch.status, 200);
    assert.equal((await run('diff', '-f', changed)).code, 0);
    assert.equal((await run('apply', '--server-side', '-f', changed)).code, 0);
  });

  test('a custom kind is applied with a merge patch', async (t) => {
    const { api, run, file } = await startShell(t);
    assert.equal((await run('apply', '-f', await file(snapshot('a')))).code, 0);
    const labelled = await file({ ...snapshot('a'), metadata: { name: 'a', labels: { x: 'y' } } });
    assert.match((await run('apply', '-f', labelled)).stdout, /configured/);
    assert.equal(api.server.requestLog.entries({ method: 'PATCH' })[0]?.contentType, 'application/merge-patch+json');
  });

  test('creating twice fails with the text of the server', async (t) => {
    const { run, file } = await startShell(t);
    const path = await file(storageClass('fast'));
    assert.equal((await run('create', '-f', path)).code, 0);
    const { code, stderr } = await run('create', '-f', path);
    assert.equal(code, 1);
    assert.match(stderr, /\(AlreadyExists\).*storageclasses\.storage\.k8s\.io "fast" already exists/);
  });

  test('what kubectl creates from flags arrives, though it comes as protobuf', async (t) => {
    const { api, run } = await startShell(t);
    const commands = [
      ['configmap', 'c', '--from-literal=value=b'],
      ['namespace', 'n'],
      ['secret', 'generic', 's', '--from-literal=k=v'],
      ['serviceaccount', 'a'],
      ['clusterrole', 'r', '--verb=get', '--resource=pods'],
      ['clusterrolebinding', 'b', '--clusterrole=r', '--serviceaccount=default:a'],
    ];
    for (const command of commands) {
      const { code, stderr } = await run('create', ...command);
      assert.equal(code, 0, stderr);
    }
    assert.equal((await api.get(`${paths.configMaps}/c`)).body.data.value, 'b');
    assert.match((await run('create', 'token', 'a')).stdout, /^\S{20,}$/m);
    assert.match((await run('auth', 'whoami')).stdout, /system:admin/);
    assert.equal((await run('auth', 'can-i', 'get', 'pods')).stdout, 'yes\n');
  });

  test('create names a misspelt field', async (t) => {
    const { run, file } = await startShell(t);
    const { code, stderr } = await run('create', '-f', await file(claim('a', { foo: 1 })));
    assert.equal(code, 1);
    assert.match(stderr, /strict decoding error: unknown field "spec.foo"/);
  });

  test('get -w prints the object and each change', async (t) => {
    const { api, start } = await startShell(t);
    await api.post(paths.claims, claim('a'));
    const watching = start('get', 'pvc', 'a', '-w', '--no-headers');
    let printed = '';
    const lines = (count: number): Promise<void> =>
      new Promise((resolve) => {
        const check = (): void => {
          if (printed.split('\n').length > count) resolve();
        };
        watching.stdout.on('data', check);
        check();
      });
    watching.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
    await watched(api);
    for (const value of ['1', '2']) {
      await api.patch(`${paths.claims}/a`, 'merge', { metadata: { labels: { value } } });
    }
    await lines(3);
    assert.equal(printed.trim().split('\n').length, 3);
  });

  test('wait sees the phase change', async (t) => {
    const { api, run } = await startShell(t);
    await api.post(paths.claims, claim('a'));
    const waiting = run('wait', '--for=jsonpath={.status.phase}=Bound', 'pvc/a', `--timeout=${patienceMs}ms`);
    await watched(api);
    await api.patch(`${paths.claims}/a/status`, 'merge', { status: { phase: 'Bound' } });
    assert.equal((await waiting).code, 0);
  });

  test('delete waits for the last finalizer', async (t) => {
    const { api, run } = await startShell(t);
    await api.post(paths.claims, claim('a'));
    const deleting = run('delete', 'pvc', 'a');
    await watched(api);
    const client = api.server.client('test');
    const held = client.get(claims, { namespace: 'default', name: 'a' });
    assert.ok(held?.metadata.deletionTimestamp);
    client.update(claims, { ...held, metadata: { ...held.metadata, finalizers: [] } });
    const { code, stdout } = await deleting;
    assert.equal(code, 0);
    assert.match(stdout, /persistentvolumeclaim "a" deleted/);
  });

  test('get prints the columns of the printers', async (t) => {
    const { api, run } = await startShell(t);
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
    await api.post(paths.classes, { ...storageClass('fast'), metadata: { name: 'fast', annotations } });
    await api.post(paths.volumes, volume('v'));
    await api.post(paths.claims, claim('a'));
    const { code, stdout } = await run('get', 'pv,pvc,sc', '-o', 'wide');
    assert.equal(code, 0);
    assert.match(stdout, /^NAME +CAPACITY +ACCESS MODES +RECLAIM POLICY +STATUS +CLAIM +STORAGECLASS .*VOLUMEMODE$/m);
    assert.match(stdout, /^persistentvolume\/v +1Gi +RWO +Retain +Pending +<unset> +\S+ +Filesystem$/m);
    assert.match(stdout, /^storageclass.storage.k8s.io\/fast \(default\) +x.example.com +Delete +Immediate +false/m);
  });

  test('a list is repeated after Retry-After', async (t) => {
    const { api, run } = await startShell(t);
    api.server.faults.add({
      match: { verb: 'list', resource: 'persistentvolumeclaims' },
      action: { type: 'status', code: 429, reason: 'TooManyRequests', retryAfter: 1 },
      times: 2,
    });
    assert.equal((await run('get', 'pvc')).code, 0);
    assert.equal(api.server.requestLog.entries({ verb: 'list', resource: 'persistentvolumeclaims' }).length, 3);
  });

  test('over plain HTTP no credentials are sent', async (t) => {
    const { api, run } = await startShell(t);
    assert.equal((await run('get', 'pvc', '--token', 'secret')).code, 0);
    const requests = api.server.requestLog.entries();
    assert.ok(requests.length > 0 && requests.every(({ hasCredentials }) => !hasCredentials));
  });

  test('over TLS the kubeconfig of a sandbox is enough', async (t) => {
    await using sandbox = await Sandbox.start({ api: { tls: true } });
    const folder = await mkdtemp(join(tmpdir(), 'kubectl-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const args = ['--kubeconfig', sandbox.kubeconfig, '--cache-dir', folder, 'get', 'nodes', '-o', 'name'];
    const { stdout } = await promisify(execFile)(kubectl ?? '', args);
    assert.equal(stdout, 'node/node-1\nnode/node-2\n');
  });

  test('describe, events, explain, label, annotate, edit and patch find what they ask for', async (t) => {
    const { api, run } = await startShell(t);
    const { body } = await api.post(paths.claims, claim('a'));
    api.server
      .client('test')
      .recordEvent(
        { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: body.metadata },
        'Normal',
        'Reason',
        'some text',
        'component',
      );
    for (const args of [
      ['describe', 'pvc', 'a'],
      ['events', '--for', 'pvc/a'],
      ['get', 'events'],
    ]) {
      const { code, stdout } = await run(...args);
      assert.equal(code, 0);
      assert.match(stdout, /some text/, args.join(' '));
    }
    const commands = [
      ['explain', 'pvc.spec.accessModes'],
      ['label', 'pvc', 'a', 'x=y'],
      ['annotate', 'pvc', 'a', 'x=y'],
      ['patch', 'pvc', 'a', '-p', '{"metadata":{"labels":{"z":"1"}}}'],
      ['patch', 'pvc', 'a', '--subresource=status', '--type=merge', '-p', '{"status":{"phase":"Bound"}}'],
      ['get', 'pvc', 'a', '-o', 'yaml'],
      ['get', 'pvc', '--sort-by=.metadata.name'],
      ['get', 'pvc', '-A', '--chunk-size=1'],
    ];
    for (const args of commands) {
      const { code, stderr } = await run(...args);
      assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    }
    const { metadata, status } = (await api.get(`${paths.claims}/a`)).body;
    assert.deepEqual(metadata.labels, { x: 'y', z: '1' });
    assert.equal(status.phase, 'Bound');
  });

  test('create deployment and scale do what they say, and a warning says that no pods follow', async (t) => {
    const { api, run } = await startShell(t);
    const created = await run('create', 'deployment', 'web', '--image=none', '--port=80', '--', 'serve');
    assert.equal(created.code, 0, created.stderr);
    assert.match(created.stderr, /^Warning: the sandbox runs no controller for deployments: no pods follow$/m);
    assert.match((await run('scale', 'deployment/web', '--replicas=3')).stdout, /^deployment\.apps\/web scaled$/m);
    const { stdout } = await run('get', 'deployment', 'web', '-o', 'json');
    const { spec } = JSON.parse(stdout) as {
      spec: { replicas: number; selector: unknown; template: { spec: { containers: unknown[] } } };
    };
    assert.equal(spec.replicas, 3);
    assert.deepEqual(spec.selector, { matchLabels: { app: 'web' } });
    assert.deepEqual(spec.template.spec.containers, [
      { name: 'none', image: 'none', command: ['serve'], ports: [{ containerPort: 80 }] },
    ]);
    const scale = JSON.parse((await api.get('/apis/apps/v1/namespaces/default/deployments/web/scale')).text) as object;
    assert.deepEqual(
      { ...scale, metadata: undefined },
      {
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        metadata: undefined,
        spec: { replicas: 3 },
        status: { replicas: 0, selector: 'app=web' },
      },
    );
    assert.equal((await run('scale', 'deployment/none', '--replicas=3')).code, 1);
  });

  test('create quota makes one with its amounts and scopes', async (t) => {
    const { run } = await startShell(t);
    const hard = '--hard=requests.storage=10Gi,persistentvolumeclaims=3';
    const created = await run('create', 'quota', 'storage', hard, '--scopes=BestEffort');
    assert.equal(created.code, 0, created.stderr);
    const { stdout } = await run('get', 'quota', 'storage', '-o', 'json');
    const { spec } = JSON.parse(stdout) as { spec: object };
    assert.deepEqual(spec, {
      hard: { persistentvolumeclaims: '3', 'requests.storage': '10Gi' },
      scopes: ['BestEffort'],
    });
  });

  test('logs, exec and port-forward say that the sandbox runs no containers', async (t) => {
    const { run } = await startShell(t);
    assert.equal((await run('run', 'p', '--image=none')).code, 0);
    for (const [args, why] of [
      [['logs', 'p'], 'there are no logs'],
      [['exec', 'p', '--', 'ls'], 'no command can run in it'],
    ] as const) {
      const { code, stderr } = await run(...args);
      assert.equal(code, 1);
      assert.ok(stderr.includes(`the sandbox runs no containers, it only marks pods as running: ${why}`), stderr);
    }
    assert.match((await run('logs', 'none')).stderr, /pods "none" not found/);
  });

  test('explain describes kinds and fields', async (t) => {
    const { run } = await startShell(t);
    for (const [path, want] of [
      ['pvc', /DESCRIPTION:\n\s+A claim asks for storage/],
      ['pvc.spec.storageClassName', /DESCRIPTION:\n\s+\S.*class/],
      ['pv.spec.csi.volumeHandle', /DESCRIPTION:\n\s+\S.*volume/],
      ['storageclass.volumeBindingMode', /WaitForFirstConsumer/],
      ['csidriver.spec.attachRequired', /DESCRIPTION:\n\s+\S.*attach/i],
      ['volumesnapshot.spec.source', /DESCRIPTION:\n\s+\S/],
    ] as const) {
      const { code, stdout, stderr } = await run('explain', path);
      assert.equal(code, 0, stderr);
      assert.match(stdout, want);
      assert.doesNotMatch(stdout, /<no description>|<empty>/, stdout);
    }
  });

  for (const overlay of ['.', ...overlays]) {
    test(`apply -k deploy/${overlay} works, twice, and says what it cannot`, async (t) => {
      const { run } = await startShell(t);
      const folder = join(deploy, overlay);
      const first = await run('apply', '-k', folder);
      if (overlay === 'overlays/production') {
        assert.match(first.stderr, /no matches for kind "ServiceMonitor"/, 'as in a cluster without the operator');
      } else assert.equal(first.code, 0, first.stderr);
      assert.match(first.stdout, /created/);
      const second = await run('apply', '-k', folder);
      // kubectl replaces the selector of a disruption budget with every apply, in a cluster as well
      assert.doesNotMatch(second.stdout, /created|(?<!policy\/\S+ )configured/, second.stdout);
    });
  }
});
