/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test, type TestContext } from 'node:test';
import { serves } from '../support/admin.ts';
import { openScene, type Scene } from '../support/scene.ts';

const resource = { group: 'storage.k8s.io', plural: 'volumeattributesclasses' };

/** The kind that the client library knows in v1 alone. */
function attributesClass(
  version: string,
  name: string,
  driverName: string,
): Record<string, unknown> & { kind: string } {
  return {
    apiVersion: `storage.k8s.io/${version}`,
    kind: 'VolumeAttributesClass',
    metadata: { name },
    driverName,
    parameters: { iops: '4000', tier: 'gold' },
  };
}

for (const version of ['v1', 'v1beta1'] as const) {
  describe(`a claim with an attributes class of ${version}`, () => {
    let scene: Scene;
    let served: boolean;
    before(async () => {
      scene = await openScene({
        rbac: ['components/attributes-classes/rbac.yaml'],
        ...(version === 'v1beta1' && { cluster: { attributesClasses: version } }),
      });
      served = await serves(scene.admin, { ...resource, version });
    });
    afterEach((context) => scene.report(context));
    after(() => scene.close());

    /** Whether the test is left out, for a reason that the server gave. */
    const leftOut = (t: TestContext): boolean => {
      if (!served) t.skip(`the API server does not serve volumeattributesclasses ${version}`);
      return !served;
    };
    const create = async (t: TestContext, name: string, driverName = scene.driver.driverName): Promise<void> => {
      const object = attributesClass(version, name, driverName);
      await scene.admin.objects.create(object);
      t.after(() => scene.admin.objects.delete(object));
    };

    test('has its parameters sent to the driver and its name on the volume', async (t) => {
      if (leftOut(t)) return;
      const name = `${scene.namespace}-gold`;
      await create(t, name);
      const className = await scene.createClass({ parameters: { colour: 'blue' } });
      const { metadata } = await scene.createClaim({ className, spec: { volumeAttributesClassName: name } });
      const { volume } = await scene.bound(metadata?.name ?? '');
      assert.equal(volume.spec?.volumeAttributesClassName, name);
      const [call] = await scene.driver.calls('CreateVolume');
      assert.deepEqual(call?.request.mutable_parameters, { iops: '4000', tier: 'gold' });
      assert.deepEqual(call.request.parameters, { colour: 'blue' });
    });

    test('that is missing is told so, and served once the class is there', async (t) => {
      if (leftOut(t)) return;
      const name = `${scene.namespace}-late`;
      const before = (await scene.driver.calls('CreateVolume')).length;
      const claim = await scene.createClaim({
        className: await scene.createClass(),
        spec: { volumeAttributesClassName: name },
      });
      const failed = await scene.event(claim, 'ProvisioningFailed');
      assert.equal(failed.type, 'Warning');
      const text = `volumeattributesclasses.storage.k8s.io "${name}" not found`;
      assert.ok(failed.message?.includes(text), failed.message);
      assert.equal((await scene.driver.calls('CreateVolume')).length, before);
      await create(t, name);
      const { volume } = await scene.bound(claim.metadata?.name ?? '');
      assert.equal(volume.spec?.volumeAttributesClassName, name);
    });

    test('of another driver is refused', async (t) => {
      if (leftOut(t)) return;
      const name = `${scene.namespace}-foreign`;
      const before = (await scene.driver.calls('CreateVolume')).length;
      await create(t, name, 'elsewhere.example.com');
      const claim = await scene.createClaim({
        className: await scene.createClass(),
        spec: { volumeAttributesClassName: name },
      });
      const failed = await scene.event(claim, 'ProvisioningFailed');
      assert.match(failed.message ?? '', /is for driver elsewhere\.example\.com which does not match driver name/);
      assert.equal((await scene.driver.calls('CreateVolume')).length, before);
      await scene.deleteClaim(claim.metadata?.name ?? '');
    });
  });
}

describe('a claim with an attributes class where none is served', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene({ cluster: { attributesClasses: 'none' } });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  /** A claim with a class and a volume without one that is meant for it, neither of which is ours. @returns its name. */
  const createForeignPair = async (t: TestContext): Promise<string> => {
    const { admin, namespace } = scene;
    const storageClassName = 'by-hand';
    const { metadata } = await scene.createClaim({
      className: storageClassName,
      spec: { volumeAttributesClassName: 'gold' },
    });
    const claimName = metadata?.name ?? '';
    const name = `${namespace}-by-hand`;
    await admin.core.createPersistentVolume({
      body: {
        metadata: { name },
        spec: {
          accessModes: ['ReadWriteOnce'],
          capacity: { storage: '1Gi' },
          persistentVolumeReclaimPolicy: 'Retain',
          storageClassName,
          claimRef: { namespace, name: claimName, uid: metadata?.uid ?? '' },
          csi: { driver: 'nobody.example.com', volumeHandle: name },
        },
      },
    });
    t.after(async () => {
      await scene.deleteClaim(claimName);
      await admin.core.deletePersistentVolume({ name });
    });
    return claimName;
  };
  const phaseOf = async (name: string): Promise<string | undefined> => (await scene.readClaim(name)).status?.phase;

  test('gets a volume without it, bound only where Kubernetes binds such a pair, and one event that says so', async (t) => {
    const { driver, admin } = scene;
    for (const version of ['v1', 'v1beta1']) assert.equal(await serves(admin, { ...resource, version }), false);
    const className = await scene.createClass();
    const claim = await scene.createClaim({ className, spec: { volumeAttributesClassName: 'gold' } });
    if (claim.spec?.volumeAttributesClassName === undefined) {
      t.skip('the API server drops volumeAttributesClassName from claims');
      return;
    }
    const { message, type } = await scene.event(claim, 'VolumeAttributesClassNotApplied');
    assert.equal(type, 'Warning');
    assert.match(message ?? '', /^Volume attributes class "gold" was not applied: /);
    const [call] = await driver.calls('CreateVolume');
    assert.deepEqual(call?.request.mutable_parameters ?? {}, {});
    const name = `pvc-${claim.metadata?.uid ?? ''}`;
    const volume = await scene.eventually(() => admin.core.readPersistentVolume({ name }));
    assert.equal(volume.spec?.volumeAttributesClassName, undefined);

    const foreign = await createForeignPair(t);
    const later = await scene.createClaim({ className });
    await scene.bound(later.metadata?.name ?? ''); // by now the binder has tried the first two
    const phase = await scene.eventually(async () => {
      const phase = await phaseOf(foreign);
      assert.equal(await phaseOf(claim.metadata?.name ?? ''), phase);
      return phase;
    });
    t.diagnostic(`a claim with a class beside its volume without one is ${phase ?? 'without phase'}`);
    await scene.deleteClaim(claim.metadata?.name ?? '');
    await scene.volumeGone(name);
  });
});
