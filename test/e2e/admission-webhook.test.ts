/** What admission webhooks of a cluster do to a sidecar's requests; only a real API server has webhooks. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { startAdmissionWebhook, type AdmissionWebhook } from '../support/admission-webhook.ts';
import { openScene, type Scene } from '../support/scene.ts';

const isReal = process.env['E2E_TARGET'] === 'kubernetes';
const finalizer = 'external-provisioner.volume.kubernetes.io/finalizer';

describe('admission webhooks', { skip: isReal ? false : 'needs the real control plane' }, () => {
  let scene: Scene;
  let webhook: AdmissionWebhook;
  before(async () => {
    scene = await openScene({
      sidecarFlags: ['--timeout=5s', '--retry-interval-max=2s'],
      cluster: { ownCluster: true },
    });
    webhook = await startAdmissionWebhook(scene.cluster, 'hostile');
  });
  beforeEach(() => webhook.decide(() => undefined));
  afterEach((context) => scene.report(context));
  after(async () => {
    await webhook[Symbol.asyncDispose]();
    await scene.close();
  });

  const claimed = async (): Promise<string> =>
    (await scene.createClaim({ className: await scene.createClass() })).metadata?.name ?? '';

  /** Deletes the claim, and waits until neither volume nor storage is left. */
  const deleted = async (claim: string, volume: string): Promise<void> => {
    await scene.deleteClaim(claim);
    await scene.volumeGone(volume);
    await nothingLeft();
  };

  const nothingLeft = () =>
    scene.eventually(async () => {
      assert.deepEqual(await scene.driver.volumeIds(), []);
    });

  const failureOf = (claimName: string, text: RegExp) =>
    scene.eventually(async () => {
      const messages = (await scene.events(await scene.readClaim(claimName))).map(({ message = '' }) => message);
      assert.ok(
        messages.some((message) => text.test(message)),
        messages.join('\n'),
      );
    });

  for (const { title, deny } of [
    { title: 'without a word', deny: {} },
    { title: 'with a code and no reason', deny: { code: 403, message: 'by policy' } },
    { title: 'with a reason of its own', deny: { code: 409, reason: 'house rules', message: 'by policy' } },
    { title: 'as one that fails does', deny: { code: 500, message: 'boom' } },
  ]) {
    test(`a PersistentVolume that is denied ${title} is an event, saved when the webhook allows it, and gone with its claim`, async () => {
      webhook.decide(({ operation, resource }) =>
        operation === 'CREATE' && resource.resource === 'persistentvolumes' ? { deny } : undefined,
      );
      const [kept, unwanted] = [await claimed(), await claimed()];
      for (const claim of [kept, unwanted])
        await failureOf(claim, /PV object.*admission webhook "hostile.example.com"/);
      await scene.deleteClaim(unwanted);
      await scene.eventually(async () => assert.equal((await scene.driver.volumeIds()).length, 1));
      webhook.decide(() => undefined);
      const { volume } = await scene.bound(kept);
      await deleted(kept, volume.metadata?.name ?? '');
    });
  }

  test('finalizers, owners and annotations that a webhook adds to a volume stay, and the storage is deleted once', async () => {
    webhook.decide(({ operation, resource }) =>
      operation === 'CREATE' && resource.resource === 'persistentvolumes'
        ? {
            patch: [
              { op: 'add', path: '/metadata/finalizers/-', value: 'example.com/held' },
              { op: 'add', path: '/metadata/annotations/example.com~1note', value: 'größer' },
              { op: 'add', path: '/metadata/labels', value: { tenant: 'blue' } },
            ],
          }
        : undefined,
    );
    const claim = await claimed();
    const { volume } = await scene.bound(claim);
    const name = volume.metadata?.name ?? '';
    await scene.deleteClaim(claim);
    const held = await scene.eventually(async () => {
      const found = await scene.admin.core.readPersistentVolume({ name });
      assert.deepEqual(found.metadata?.finalizers, ['example.com/held']);
      return found;
    });
    assert.equal(held.metadata?.annotations?.['example.com/note'], 'größer');
    await nothingLeft();
    delete held.metadata.finalizers;
    await scene.admin.core.replacePersistentVolume({ name, body: held });
    await scene.volumeGone(name);
    const deletions = await scene.driver.calls('DeleteVolume');
    const handle = volume.spec?.csi?.volumeHandle;
    assert.equal(deletions.filter(({ request }) => request.volume_id === handle).length, 1);
  });

  for (const { title, operation } of [
    { title: 'the deletion of a volume', operation: 'DELETE' },
    { title: 'the removal of its finalizer', operation: 'UPDATE' },
  ]) {
    test(`a webhook that denies ${title} is named in the log, and the volume goes when it allows it`, async () => {
      const claim = await claimed();
      const { volume } = await scene.bound(claim);
      const name = volume.metadata?.name ?? '';
      webhook.decide((request) =>
        request.operation === operation && request.resource.resource === 'persistentvolumes'
          ? { deny: { code: 403, message: 'frozen' } }
          : undefined,
      );
      await scene.deleteClaim(claim);
      await scene.eventually(() => {
        const lines = scene.sidecar.log().split('\n');
        assert.ok(lines.some((line) => line.includes(name) && line.includes('frozen')));
      });
      const found = await scene.admin.core.readPersistentVolume({ name });
      assert.ok(found.metadata?.finalizers?.includes(finalizer));
      webhook.decide(() => undefined);
      await scene.volumeGone(name);
    });
  }

  test('a webhook that removes the annotations of the intent journal is reported', async () => {
    webhook.decide(({ resource, object }) =>
      resource.resource === 'leases' && Object.keys(object?.metadata.annotations ?? {}).length > 0
        ? { patch: [{ op: 'replace', path: '/metadata/annotations', value: {} }] }
        : undefined,
    );
    const claim = await claimed();
    const { volume } = await scene.bound(claim);
    await scene.eventually(() =>
      assert.match(scene.sidecar.log(), /The intent journal cannot be written.*without annotation.*admission webhook/),
    );
    await deleted(claim, volume.metadata?.name ?? '');
  });

  test('events that are denied hold up nothing', async () => {
    webhook.decide(({ resource }) => (resource.resource === 'events' ? { deny: { code: 403 } } : undefined));
    const claim = await claimed();
    const { volume } = await scene.bound(claim);
    await deleted(claim, volume.metadata?.name ?? '');
  });
});
