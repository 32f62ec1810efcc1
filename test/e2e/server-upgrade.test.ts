import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test, type TestContext } from 'node:test';
import { kubernetesVersion } from '../support/control-plane/programs.ts';
import { openScene, type Scene, type SceneOptions } from '../support/scene.ts';
import { allBound, assertMadeOnce, createClaims, minorOf, missingVersion } from './coming-claims.ts';

const older = '1.32';
const newer = (await kubernetesVersion()).replace(/\.\d+$/, '');
const skip = await missingVersion([older, newer]);

/** Opens a scene with a control plane of its own for the tests of a suite. */
function useScene(options: SceneOptions): { readonly scene: Scene } {
  let scene: Scene;
  before(async () => {
    scene = await openScene({ restartsApiServer: true, sidecarFlags: ['--worker-threads=10'], ...options });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());
  return {
    get scene() {
      return scene;
    },
  };
}

/** Replaces the control plane of one version by that of another while claims come. @returns the names of these claims. */
async function replaceWhileClaimsCome(
  t: TestContext,
  { scene, className, from, to }: { scene: Scene; className: string; from: string; to: string },
): Promise<string[]> {
  assert.equal(await minorOf(scene.admin), from);
  const server = { replaced: false };
  const coming = createClaims({ scene, className, until: () => server.replaced, signal: t.signal });
  await scene.eventually(async () => assert.ok((await scene.driver.volumeIds()).length >= 20));
  const startMs = performance.now();
  await scene.cluster.apiServer?.upgrade?.(to);
  server.replaced = true;
  t.diagnostic(`replaced within ${Math.round(performance.now() - startMs)} ms`);
  assert.equal(await minorOf(scene.admin), to);
  return await coming;
}

/** Deletes a claim and waits until all others are bound; each of them must have been provisioned once. */
async function deleteOneOf(scene: Scene, { claim, count }: { claim: string; count: number }): Promise<void> {
  const { volume } = await scene.bound(claim);
  const name = volume.metadata?.name ?? '';
  await scene.deleteClaim(claim);
  await scene.volumeGone(name);
  const claims = await allBound({ scene, count: count - 1 });
  await assertMadeOnce({ scene, claims, deleted: [name] });
}

describe(`a control plane that is upgraded from ${older} to ${newer} while claims come`, { skip }, () => {
  const suite = useScene({
    cluster: { kubernetes: older, attributesClasses: 'v1beta1' },
    rbac: ['components/attributes-classes/rbac.yaml'],
  });

  test('loses no claim, makes no volume twice, and deletes what is released', async (t) => {
    const { scene } = suite;
    const { admin, namespace, driver } = scene;
    const gold = `${namespace}-gold`;
    await admin.objects.create({
      apiVersion: 'storage.k8s.io/v1beta1',
      kind: 'VolumeAttributesClass',
      metadata: { name: gold },
      ...{ driverName: driver.driverName, parameters: { tier: 'gold' } },
    });
    const className = await scene.createClass();
    const quick = async (name: string): Promise<void> => {
      await scene.createClaim({ className, name, spec: { volumeAttributesClassName: gold } });
    };
    await quick('before');
    await scene.bound('before');

    const coming = await replaceWhileClaimsCome(t, { scene, className, from: older, to: newer });
    await quick('after'); // in v1, which the server did not have when the sidecar started
    await deleteOneOf(scene, { claim: 'before', count: coming.length + 2 });
    const { volume: last } = await scene.bound('after');
    assert.equal(last.spec?.volumeAttributesClassName, gold);
  });
});

describe(`a control plane that is rolled back from ${newer} to ${older} while claims come`, { skip }, () => {
  const suite = useScene({ cluster: { kubernetes: newer } });

  test('goes on with all claims, makes no volume twice, and deletes what is released', async (t) => {
    const { scene } = suite;
    const className = await scene.createClass();
    await scene.createClaim({ className, name: 'before' });
    await scene.bound('before');
    const coming = await replaceWhileClaimsCome(t, { scene, className, from: newer, to: older });
    await deleteOneOf(scene, { claim: 'before', count: coming.length + 1 });
  });
});
