/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/**
 * Rights that vanish while the sidecar runs, and come back: it explains meanwhile what is missing, in the event, on the page, in `why` and
 * in the metrics, and goes on by itself once the right is there again.
 */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { AuthorizationV1Api, type KubernetesObject } from '@kubernetes/client-node';
import type { Explanation } from '../../src/explain/explanation.ts';
import { loadKubeconfig } from '../support/admin.ts';
import { freePort } from '../support/free-ports.ts';
import { type DriverProcess, startDriver } from '../support/driver-process.ts';
import { refusedRights } from '../support/refused-rights.ts';
import { openScene, type Scene } from '../support/scene.ts';
import { startSidecar } from '../support/sidecar-process.ts';
import type { StartedProcess } from '../support/started-process.ts';
import { startBalancer, type TcpBalancer } from '../support/tcp-balancer.ts';
import { readerKubeconfig, whyHere } from '../support/why-command.ts';

const deploy = join(import.meta.dirname, '../../deploy');
const secret = {
  'csi.storage.k8s.io/provisioner-secret-name': 'key',
  'csi.storage.k8s.io/provisioner-secret-namespace': '${pvc.namespace}',
};

interface Role extends KubernetesObject {
  rules: { apiGroups: string[]; resources: string[]; verbs: string[] }[];
}

describe('a right that vanishes', () => {
  const closers: (() => Promise<unknown>)[] = [];
  let scene: Scene;
  let driver: DriverProcess;
  let sidecar: StartedProcess;
  let balancer: TcpBalancer;
  let kubeconfig: string;
  let reviews: AuthorizationV1Api;
  let account: { namespace: string; name: string };
  let url: string;

  before(async () => {
    scene = await openScene();
    closers.push(() => scene.close());
    const { cluster, namespace } = scene;
    reviews = loadKubeconfig(cluster.adminKubeconfig).makeApiClient(AuthorizationV1Api);
    account = { namespace: cluster.sidecarNamespace, name: `${namespace}-rights` };
    const folder = await mkdtemp(join(tmpdir(), `${namespace}-`));
    closers.push(() => rm(folder, { recursive: true, force: true }));
    driver = await startDriver({ driverName: `rights.${namespace}.example.com`, folder, flags: [] });
    closers.push(() => driver.stop());
    const files = ['base', 'components/leader-election', 'components/secrets'].map((each) =>
      join(deploy, each, 'rbac.yaml'),
    );
    const manifests = (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('\n---\n');
    const direct = await readFile(
      await cluster.accountKubeconfig(manifests.replaceAll('csi-provisioner', account.name), account),
      'utf8',
    );
    const port = Number(/server"?: "?https?:\/\/[^:]+:(\d+)/.exec(direct)?.[1]);
    balancer = await startBalancer([port]);
    closers.push(async () => balancer[Symbol.asyncDispose]());
    const balanced = join(folder, 'kubeconfig');
    await writeFile(balanced, direct.replaceAll(`:${port}`, `:${balancer.port}`));
    const httpPort = await freePort();
    url = `http://127.0.0.1:${httpPort}`;
    sidecar = await startSidecar({
      csiAddress: driver.address,
      kubeconfig: balanced,
      namespace: cluster.sidecarNamespace,
      flags: [
        '--leader-election',
        '--logging-format=json',
        '--status-page',
        `--http-endpoint=127.0.0.1:${httpPort}`,
        '--retry-interval-max=2s',
      ],
    });
    closers.push(() => sidecar.stop());
    kubeconfig = await readerKubeconfig(cluster, namespace);
    await scene.admin.core.createNamespacedSecret({
      namespace,
      body: { metadata: { name: 'key' }, stringData: { password: 'x' } },
    });
  });
  afterEach((context) => scene.report(context));
  after(async () => {
    for (const close of closers.toReversed()) await close();
  });

  const get = async (path: string): Promise<string> => await (await fetch(`${url}${path}`)).text();

  /** Takes verbs of a resource from a role. @returns what gives them back. */
  async function without(kind: 'ClusterRole' | 'Role', resource: string, verbs: readonly string[], nameEnd = '') {
    const { objects } = scene.admin;
    const name = kind === 'Role' ? `${account.name}${nameEnd}` : `${account.name}${nameEnd}:${account.namespace}`;
    const metadata = { name, ...(kind === 'Role' && { namespace: account.namespace }) };
    const header = { apiVersion: 'rbac.authorization.k8s.io/v1', kind, metadata };
    const read = (): Promise<Role> => objects.read<Role>(header);
    const { rules } = await read();
    const write = async (wanted: Role['rules']): Promise<void> => {
      await objects.replace({ ...(await read()), rules: wanted });
    };
    const isAllowed = async (verb: string): Promise<boolean> => {
      const { namespace } = kind === 'Role' ? account : scene;
      const { status } = await reviews.createSubjectAccessReview({
        body: {
          spec: {
            user: `system:serviceaccount:${account.namespace}:${account.name}`,
            groups: ['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`, 'system:authenticated'],
            resourceAttributes: {
              verb,
              group: resource === 'leases' ? 'coordination.k8s.io' : '',
              resource,
              ...(resource !== 'persistentvolumes' && { namespace }),
            },
          },
        },
      });
      return status?.allowed ?? false;
    };
    await write(
      rules
        .map((rule) =>
          rule.resources.includes(resource)
            ? { ...rule, verbs: rule.verbs.filter((verb) => !verbs.includes(verb)) }
            : rule,
        )
        .filter((rule) => rule.verbs.length > 0),
    );
    // the API server's view of roles is a moment behind
    await scene.eventually(async () => {
      for (const verb of verbs) assert.equal(await isAllowed(verb), false, `${verb} ${resource}`);
    });
    return () => write(rules);
  }
  const why = (object: string): Promise<Explanation> => whyHere(kubeconfig, object);
  const pageOf = (claim: string): Promise<string> => get(`/status?claim=${scene.namespace}/${claim}`);
  const isLogged = (resource: string): boolean =>
    refusedRights(sidecar.log()).some((line) => line.includes(`"resource":"${resource}"`));

  test('to create PersistentVolumes: the claim is rejected in all places, and gets its volume once it may', async () => {
    const { namespace } = scene;
    const className = await scene.createClass({ provisioner: driver.driverName });
    const back = await without('ClusterRole', 'persistentvolumes', ['create']);
    const claim = await scene.createClaim({ name: 'saving', className });
    await scene.event(claim, 'ProvisioningFailed');
    await scene.eventually(async () => {
      const { verdict, cause, message, cure } = await why(`${namespace}/saving`);
      assert.deepEqual({ verdict, cause }, { verdict: 'stuck', cause: 'rejected' }, message);
      assert.match(cure, /^Add the rule /);
      const page = await pageOf('saving');
      assert.match(page, /<dt>Cause<dd><b>stuck: rejected<\/b>/);
      const escaped = cure.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll("'", '&#39;');
      assert.ok(page.includes(escaped), page);
      assert.match(await get('/metrics'), /^failing_claims\{cause="rejected"\} 1$/m);
    });
    assert.ok(isLogged('persistentvolumes'));
    await back();
    await scene.bound('saving');
  });

  test('to get Secrets: the claim says so, and gets its volume once it may', async () => {
    const className = await scene.createClass({ provisioner: driver.driverName, parameters: secret });
    const back = await without('ClusterRole', 'secrets', ['get'], '-secrets');
    const claim = await scene.createClaim({ name: 'secret', className });
    const { message = '', metadata } = await scene.event(claim, 'ProvisioningFailed');
    assert.match(message, /^error getting secret key .* is forbidden: /);
    assert.deepEqual(metadata.annotations, { 'csi-provisioner/cause': 'secret-missing' });
    await scene.eventually(async () =>
      assert.match(await pageOf('secret'), /<dt>Cause<dd><b>stuck: secret-missing<\/b>.*Add the rule /s),
    );
    assert.ok(isLogged('secrets'));
    await back();
    await scene.bound('secret');
  });

  test('to record events: volumes are made all the same, and the log says what is missing', async () => {
    const className = await scene.createClass({ provisioner: driver.driverName });
    const back = await without('ClusterRole', 'events', ['create', 'patch']);
    await scene.createClaim({ name: 'quiet', className });
    await scene.bound('quiet');
    await scene.eventually(() => assert.ok(isLogged('events')));
    await back();
    await scene.eventually(async () => {
      const name = `loud-${Math.random().toString(36).slice(2)}`;
      const claim = await scene.createClaim({ name, className });
      await scene.bound(name);
      const reasons = (await scene.events(claim)).map(({ reason }) => reason);
      assert.ok(reasons.includes('ProvisioningSucceeded'), 'once the API server knows of the right');
    });
  });

  test('to write Leases: the leader goes on without the journal, says so, and recovers', async () => {
    const className = await scene.createClass({ provisioner: driver.driverName });
    const back = await without('Role', 'leases', ['create', 'update']);
    await scene.eventually(async () =>
      assert.match(await get('/readyz'), /not permitted to hold the lease .*forbidden/),
    );
    await scene.createClaim({ name: 'unjournaled', className });
    await scene.eventually(async () => assert.match(await get('/metrics'), /^intent_journal_protected 0$/m));
    assert.ok(isLogged('leases'));
    await back();
    await scene.bound('unjournaled');
    await scene.eventually(async () => assert.equal(await get('/readyz'), 'ok'));
  });

  for (const verb of ['patch', 'delete']) {
    test(`to ${verb} PersistentVolumes: a released volume says so, and goes once it may`, async () => {
      const className = await scene.createClass({ provisioner: driver.driverName });
      await scene.createClaim({ name: `gone-${verb}`, className });
      const { volume } = await scene.bound(`gone-${verb}`);
      const name = volume.metadata?.name ?? '';
      const back = await without('ClusterRole', 'persistentvolumes', [verb]);
      await scene.deleteClaim(`gone-${verb}`);
      await scene.eventually(async () => {
        const { verdict, cause, message, cure } = await why(`pv/${name}`);
        assert.deepEqual({ verdict, cause }, { verdict: 'stuck', cause: 'rejected' }, message);
        assert.match(message, /The storage is deleted, and the PersistentVolume cannot be: .* is forbidden: User /);
        assert.match(cure, /^Permit the provisioner/);
        assert.match(await get('/metrics'), /^released_volumes\{cause="rejected"\} 1$/m);
      });
      await back();
      await scene.volumeGone(name);
    });
  }

  test('to list and watch PersistentVolumes: page, readiness and the Lease say so, and it recovers', async () => {
    const back = await without('ClusterRole', 'persistentvolumes', ['list', 'watch']);
    const forbidden = async (): Promise<number> =>
      Number(
        /^reflector_errors_total\{resource="persistentvolumes",reason="Forbidden"\} (\d+)$/m.exec(
          await get('/metrics'),
        )?.[1],
      );
    const before = await forbidden();
    await scene.eventually(async () => {
      balancer.closeConnections(); // a watch that is open goes on
      assert.ok((await forbidden()) > before);
    });
    await scene.eventually(async () =>
      assert.match(await get('/readyz'), /nothing received about volumes for \d+ seconds: .*forbidden/),
    );
    assert.match(await get('/status'), /Not ready: nothing received about volumes/);
    await scene.eventually(async () => {
      const { items } = await scene.admin.core.listNamespacedEvent({ namespace: account.namespace });
      const event = items.find(
        ({ reason, involvedObject }) =>
          reason === 'ProvisionerNotReady' && involvedObject.name === driver.driverName.replaceAll('.', '-'),
      );
      assert.match(event?.message ?? '', /volumes .*forbidden/);
    });
    await back();
    await scene.eventually(async () => assert.equal(await get('/readyz'), 'ok'));
  });
});
