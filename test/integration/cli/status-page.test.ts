/** The whole program with `--status-page`: what the page says of real claims, a real driver and a real API server. */
import assert from 'node:assert/strict';
import { status } from '@grpc/grpc-js';
import { networkInterfaces } from 'node:os';
import { describe, test } from 'node:test';
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import { eventually } from '../../support/eventually.ts';
import { DriverFailure } from '../../support/fakes/recording-driver.ts';
import { Scene, type SceneOptions } from '../csi/scene.ts';
import { freePort } from '../../support/free-ports.ts';
import { startSidecar } from './sidecar-process.ts';

const claims = { group: '', version: 'v1', plural: 'persistentvolumeclaims' };

async function opened(
  options: SceneOptions = {},
): Promise<{ scene: Scene; page: (query?: string) => Promise<string> }> {
  const port = await freePort();
  const scene = await Scene.start({
    ...options,
    flags: [`--http-endpoint=127.0.0.1:${port}`, '--status-page', ...(options.flags ?? [])],
  });
  const page = async (query = ''): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${port}/status${query}`);
    assert.equal(answer.status, 200);
    return await answer.text();
  };
  return { scene, page };
}

const full = new DriverFailure(status.RESOURCE_EXHAUSTED, 'pool <a> is full');

describe('the page of --status-page', () => {
  test('names driver, version, capabilities, and that all is well', async () => {
    const { scene, page } = await opened();
    await using _scene = scene;
    await eventually(async () => {
      const text = await page();
      assert.match(text, /<h1>d\.example\.com /);
      assert.match(text, /Driver d\.example\.com 1\.2\.3 is connected/);
      assert.match(text, /has been running without leader election for/);
      assert.match(text, /<code>CREATE_DELETE_VOLUME<\/code>/);
      assert.match(text, /Healthy/);
      assert.match(text, /All queues are empty\./);
    });
  });

  test('shows a claim that fails with the error of its event, escaped, and that it is gone once it has its volume', async () => {
    const { scene, page } = await opened({
      flags: ['--retry-interval-start=1h', '--retry-interval-max=1h'],
      script: (driver) => driver.next('CreateVolume', full),
    });
    await using _scene = scene;
    scene.addClaim('data');
    const { message } = await scene.event('ProvisioningFailed', 'data');
    await eventually(async () => {
      const text = await page('?claim=ns1/data');
      const escaped = message.replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
      assert.ok(text.includes(`<dt>Last error<dd>${escaped}<`), text);
      assert.match(text, /<dt>State<dd>waits for next attempt/);
      assert.match(text, /<dt>Next attempt<dd>in \d+ min/);
      assert.match(text, /<dt>Failed in a row<dd>1</);
      assert.match(text, /1 of 1 waiting claim failing/);
    });
    scene.api.update(claims, withNode(scene));
    await scene.volume('data');
    await eventually(async () => assert.match(await page('?claim=ns1/data'), /volume created, not bound yet/));
  });

  test('shows claims that wait for a Pod or for a StorageClass, each with its step', async () => {
    const { scene, page } = await opened({ storageClass: { volumeBindingMode: 'WaitForFirstConsumer' } });
    await using _scene = scene;
    scene.addClaim('no-pod');
    scene.addClaim('no-class', { storageClassName: 'absent' });
    const { spec } = scene.addClaim('model');
    scene.api.create(claims, { metadata: { name: 'not-handed-over', namespace: 'ns1' }, spec });
    await eventually(async () => {
      assert.match(await page('?step=waiting-for-consumer'), /ns1\/no-pod<\/a><td><b>waits for a Pod/);
      assert.match(await page('?step=class-missing'), /ns1\/no-class<\/a><td><b class="bad">StorageClass missing/);
      assert.match(await page('?step=waiting-for-consumer'), /ns1\/not-handed-over<\/a><td><b>waits for a Pod/);
      assert.match(await page('?claim=ns1/not-handed-over'), /<dt>Cause<dd><b>waiting: waits-for-consumer<\/b>/);
      assert.match(await page(), /1 of 4 waiting claims failing/);
    });
  });

  test('shows a call while it is in flight, and its open record', async () => {
    const held = Promise.withResolvers<undefined>();
    const { scene, page } = await opened({
      script: (driver) =>
        driver.next('CreateVolume', async ({ request }) => {
          await held.promise;
          return {
            volume: {
              volume_id: 'v',
              capacity_bytes: (request as { capacity_range: { required_bytes: string } }).capacity_range.required_bytes,
            },
          };
        }),
    });
    await using _scene = scene;
    scene.addClaim('slow');
    await scene.driver.called('CreateVolume');
    await eventually(async () => {
      const text = await page();
      assert.match(text, /<th scope="row">CreateVolume<td>claim ns1\/slow<td class="n">/);
      assert.match(text, /<th scope="row">create<td class="n">1<td>ns1\/slow/);
      assert.match(text, /<a href="\?claim=ns1\/slow#claim">ns1\/slow<\/a><td><b>in progress/);
    });
    held.resolve(undefined);
    await scene.volume('slow');
    await eventually(async () => {
      const text = await page();
      assert.match(text, /No call is in flight/);
      assert.match(text, /<th scope="row">CreateVolume<td class="n">1<td class="n">0/);
      assert.match(text, /<th scope="row">create persistentvolumes<td class="n">1<td class="n">0/);
    });
  });

  test('says when the driver is away', async () => {
    const { scene, page } = await opened();
    await using _scene = scene;
    await eventually(async () => assert.match(await page(), /Healthy/));
    scene.driver.kill();
    await eventually(async () => assert.match(await page(), /The driver does not respond/));
  });

  test('of a standby says that another instance leads, and shows no list', async () => {
    const port = await freePort();
    await using sidecar = await startSidecar({
      flags: [
        `--http-endpoint=127.0.0.1:${port}`,
        '--status-page',
        '--leader-election',
        '--leader-election-namespace=ns1',
      ],
      objects: [foreignLease()],
    });
    await eventually(async () => {
      const text = await (await fetch(`http://127.0.0.1:${port}/status`)).text();
      assert.match(text, /Standby: this instance waits for the lease of the leader/);
      assert.match(text, /the leader has the list/);
      assert.match(text, /Queues are filled on the leader/);
    });
    assert.ok(sidecar.process.running());
  });

  test('says what in the cluster does not fit the sidecar', async () => {
    const port = await freePort();
    const storage = 'storage.k8s.io/v1';
    const { metadata, ...lease } = foreignLease();
    await using sidecar = await startSidecar({
      flags: [
        `--http-endpoint=127.0.0.1:${port}`,
        '--status-page',
        '--leader-election',
        '--leader-election-namespace=ns1',
      ],
      objects: [
        {
          apiVersion: storage,
          kind: 'CSIDriver',
          metadata: { name: 'd.example.com' },
          spec: { storageCapacity: true },
        },
        { apiVersion: storage, kind: 'StorageClass', metadata: { name: 'typo' }, provisioner: 'd.exmaple.com' },
        { apiVersion: storage, kind: 'StorageClass', metadata: { name: 'other' }, provisioner: 'nfs.example.com' },
        { ...lease, metadata: { ...metadata, namespace: 'default' } },
      ],
    });
    await eventually(async () => {
      const text = await (await fetch(`http://127.0.0.1:${port}/status`)).text();
      const [, section = ''] = /<div id="misfits"[^>]*>(.*?)<\/div>/s.exec(text) ?? [];
      assert.match(section, /CSIDriver d\.example\.com has storageCapacity: true, and this sidecar publishes no /);
      assert.match(section, /StorageClass typo names the provisioner d\.exmaple\.com, which is nearly the name/);
      assert.match(section, /another leads for driver d\.example\.com as well, with Lease default\/d-example-com/);
      assert.doesNotMatch(section, /StorageClass other/);
    });
    assert.ok(sidecar.process.running());
  });

  const noIpv6 = Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => address === '::1'),
  )
    ? false
    : 'this machine has no IPv6 loopback address';
  test('is served on an IPv6 address', { skip: noIpv6 }, async () => {
    const port = await freePort();
    await using sidecar = await startSidecar({ flags: [`--http-endpoint=[::1]:${port}`, '--status-page'] });
    await eventually(async () => {
      const answer = await fetch(`http://[::1]:${port}/status`);
      assert.match(await answer.text(), /<title>d\.example\.com – csi-provisioner<\/title>/);
    });
    assert.ok(sidecar.process.running());
  });

  test('shows no secret that the driver quotes in its error, and nothing that a browser takes for markup', async () => {
    const secret = 'hunter2<b>hunter2';
    const { scene, page } = await opened({
      flags: ['--retry-interval-start=1h', '--retry-interval-max=1h'],
      storageClass: {
        parameters: {
          'csi.storage.k8s.io/provisioner-secret-name': 'creds',
          'csi.storage.k8s.io/provisioner-secret-namespace': 'ns1',
        },
      },
      script: (driver) =>
        driver.next('CreateVolume', new DriverFailure(status.INTERNAL, `<i>no</i> ${secret} \u001b[31m`)),
    });
    await using _scene = scene;
    scene.api.create(
      { group: '', version: 'v1', plural: 'secrets' },
      { metadata: { namespace: 'ns1', name: 'creds' }, data: { password: Buffer.from(secret).toString('base64') } },
    );
    scene.addClaim('data');
    await eventually(async () => assert.match(await page(), /1 of 1 waiting claim failing/));
    for (const query of ['', '?claim=ns1/data', '?q=hunter2']) {
      const text = await page(query);
      assert.doesNotMatch(text.replace('value="hunter2"', '').replaceAll('q=hunter2', ''), /hunter2|<i>/, query);
    }
    assert.match(await page('?claim=ns1/data'), /desc = &lt;i&gt;no&lt;\/i&gt; \*\*\*stripped\*\*\* �\[31m/);
  });

  test('says that deletions fail, of which volumes and why, until they succeed', async () => {
    const port = await freePort();
    const names = ['pv-a', 'pv-b', 'pv-c'];
    await using sidecar = await startSidecar({
      flags: [`--http-endpoint=127.0.0.1:${port}`, '--status-page', '--retry-interval-start=200ms'],
      objects: names.map(releasedVolume),
    });
    const { driver } = sidecar;
    const attached = new DriverFailure(status.FAILED_PRECONDITION, 'volume is <still> attached');
    driver.always('DeleteVolume', attached);
    const page = async (): Promise<string> => await (await fetch(`http://127.0.0.1:${port}/status`)).text();
    await eventually(async () => {
      const text = await page();
      assert.match(text, /<title>! 3 failing – d\.example\.com/);
      assert.match(text, /!<\/span> The deletion of 3 of 3 released volumes failing/);
      for (const name of names) {
        const row = `<th scope="row">${name}<p class="e">of claim ns1/data<td><b[^>]*>[a-z ]+</b>, failed \\d+× for \\d+ s`;
        assert.match(text, new RegExp(`${row}<p class="e">FailedPrecondition: volume is &lt;still&gt; attached<td>`));
      }
      assert.match(
        text,
        /<title id="hour-failed">Attempts failed<\/title><desc [^>]*>\d+ in [^,]*, [3-9]\d* of them to delete/,
      );
    });
    driver.always('DeleteVolume', ({ request }: { request: unknown }) => {
      if ((request as { volume_id: string }).volume_id === 'pv-b') throw attached;
      return {};
    });
    await eventually(async () => assert.match(await page(), /The deletion of 1 of 1 released volume failing/));
    driver.always('DeleteVolume', {});
    await eventually(async () => {
      const text = await page();
      assert.match(text, /✓<\/span> Healthy/);
      assert.match(text, /No released volume is to be deleted/);
      assert.match(text, /<title id="hour-deleted">Volumes deleted<\/title><desc [^>]*>3 in /);
      assert.match(text, /All queues are empty\./);
    });
  });

  test('counts no claim as delayed that is gone', async () => {
    const { scene, page } = await opened({
      flags: ['--retry-interval-start=1h', '--retry-interval-max=1h'],
      script: (driver) => driver.always('CreateVolume', full),
    });
    await using _scene = scene;
    const delayed = (count: number): RegExp =>
      new RegExp(`<th scope="row">claims<td class="n">0<td class="n">0 of 100<td class="n">${count}<`);
    for (const name of ['a', 'b']) scene.addClaim(name);
    await eventually(async () => assert.match(await page(), delayed(2)));
    scene.removeClaim('a');
    await eventually(async () => {
      const text = await page();
      assert.match(text, delayed(1));
      assert.match(text, /1 of 1 waiting claim failing/);
    });
  });

  test('of a standby says when the API server does not answer: then nobody may lead', async () => {
    const port = await freePort();
    await using sidecar = await startSidecar({
      flags: [
        `--http-endpoint=127.0.0.1:${port}`,
        '--status-page',
        '--leader-election',
        '--leader-election-namespace=ns1',
      ],
      objects: [foreignLease()],
    });
    const page = async (): Promise<string> => await (await fetch(`http://127.0.0.1:${port}/status`)).text();
    await eventually(async () => assert.match(await page(), /Standby: this instance waits/));
    await sidecar.cluster[Symbol.asyncDispose]();
    await eventually(async () =>
      assert.match(await page(), /<title>! API server away – .*The API server has not responded/s),
    );
  });

  test('is not there without the flag', async () => {
    const port = await freePort();
    await using scene = await Scene.start({ flags: [`--http-endpoint=127.0.0.1:${port}`] });
    await scene.program.logged('Started provisioner controller');
    for (const path of ['/status', '/status/live', '/status/style.css'])
      assert.equal((await fetch(`http://127.0.0.1:${port}${path}`)).status, 404);
  });
});

/** Another instance leads. */
function foreignLease(): SandboxObject {
  const now = new Date().toISOString().replace('Z', '000Z');
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { namespace: 'ns1', name: 'd-example-com' },
    spec: { holderIdentity: 'another', leaseDurationSeconds: 3600, acquireTime: now, renewTime: now },
  };
}

function releasedVolume(name: string): SandboxObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, uid: name, annotations: { 'pv.kubernetes.io/provisioned-by': 'd.example.com' } },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      persistentVolumeReclaimPolicy: 'Delete',
      csi: { driver: 'd.example.com', volumeHandle: name },
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'ns1', name: 'data', uid: `claim-${name}` },
    },
    status: { phase: 'Released' },
  };
}

/** The claim with a change that has it synced again. */
function withNode(scene: Scene) {
  const claim = structuredClone(scene.api.get(claims, { namespace: 'ns1', name: 'data' }));
  assert.ok(claim !== undefined);
  claim.metadata.annotations = { ...claim.metadata.annotations, 'volume.kubernetes.io/selected-node': 'n1' };
  return claim;
}
