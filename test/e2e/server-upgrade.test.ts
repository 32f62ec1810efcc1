import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { ApiException } from '@kubernetes/client-node';
import { builtPrograms, kubernetesVersion } from '../support/control-plane/programs.ts';
import { openScene, type Scene } from '../support/scene.ts';

const older = '1.32';
const newer = (await kubernetesVersion()).replace(/\.\d+$/, '');

/** Why the test cannot run here: it needs two versions, whichever of them the other files are running on. */
async function obstacle(): Promise<string | false> {
  if (process.env['E2E_TARGET'] !== 'kubernetes') return 'the sandbox is of one version';
  for (const minor of [older, newer]) {
    if ((await builtPrograms({ minor })) === undefined) return `Kubernetes ${minor} is not compiled here`;
  }
  return false;
}

/**
 * Creates one claim after the other, also while the API server is away, and 20 more once `until` says so.
 *
 * @returns their names.
 */
async function createClaims(options: {
  scene: Scene;
  className: string;
  until: () => boolean;
  signal: AbortSignal;
}): Promise<string[]> {
  const { scene, className, until, signal } = options;
  const names: string[] = [];
  for (let afterwards = 0; afterwards < 20 && !signal.aborted;) {
    const name = `coming-${names.length}`;
    try {
      await scene.createClaim({ className, name });
    } catch (error) {
      const lostAnswer = error instanceof ApiException && error.code === 409;
      if (!lostAnswer) {
        await delay(50);
        continue;
      }
    }
    names.push(name);
    if (until()) afterwards += 1;
  }
  return names;
}

async function minorOf(scene: Scene): Promise<string> {
  const { gitVersion } = await scene.admin.version.getCode();
  return gitVersion.replace(/^v|\.\d+$/g, '');
}

describe(
  `a control plane that is upgraded from ${older} to ${newer} while claims come`,
  { skip: await obstacle() },
  () => {
    let scene: Scene;
    before(async () => {
      scene = await openScene({
        restartsApiServer: true,
        cluster: { kubernetes: older, attributesClasses: 'v1beta1' },
        rbac: ['components/attributes-classes/rbac.yaml'],
        sidecarFlags: ['--worker-threads=10'],
      });
    });
    afterEach((context) => scene.report(context));
    after(() => scene.close());

    test('loses no claim, makes no volume twice, and deletes what is released', async (t) => {
      const { admin, namespace, driver } = scene;
      assert.equal(await minorOf(scene), older);
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
      const { volume } = await scene.bound('before');

      const server = { upgraded: false };
      const coming = createClaims({ scene, className, until: () => server.upgraded, signal: t.signal });
      await scene.eventually(async () => assert.ok((await driver.volumeIds()).length >= 20));
      const startMs = performance.now();
      await scene.cluster.apiServer?.upgrade?.(newer);
      server.upgraded = true;
      t.diagnostic(`upgraded within ${Math.round(performance.now() - startMs)} ms`);
      assert.equal(await minorOf(scene), newer);
      const names = [...(await coming), 'before', 'after'];
      await quick('after'); // in v1, which the server did not have when the sidecar started
      await scene.deleteClaim('before');
      await scene.volumeGone(volume.metadata?.name ?? '');

      const claims = await scene.eventually(async () => {
        const { items } = await admin.core.listNamespacedPersistentVolumeClaim({ namespace });
        assert.deepEqual(
          items.filter(({ status }) => status?.phase !== 'Bound').map(({ metadata }) => metadata?.name),
          [],
        );
        assert.equal(items.length, names.length - 1);
        return items;
      });
      t.diagnostic(`${claims.length} claims, all bound after ${Math.round(performance.now() - startMs)} ms`);
      const { volume: last } = await scene.bound('after');
      assert.equal(last.spec?.volumeAttributesClassName, gold);
      const calls = await driver.calls('CreateVolume');
      assert.deepEqual(
        calls.map(({ request, code }) => `${request.name ?? ''} ${code}`).toSorted(),
        [volume.metadata?.name ?? '', ...claims.map(({ metadata }) => `pvc-${metadata?.uid ?? ''}`)]
          .map((name) => `${name} OK`)
          .toSorted(),
      );
      assert.equal((await driver.volumeIds()).length, claims.length);
      assert.ok(scene.sidecar.running());
    });
  },
);

describe(
  `a control plane that is rolled back from ${newer} to ${older} while claims come`,
  { skip: await obstacle() },
  () => {
    let scene: Scene;
    before(async () => {
      scene = await openScene({
        restartsApiServer: true,
        cluster: { kubernetes: newer },
        sidecarFlags: ['--worker-threads=10'],
      });
    });
    afterEach((context) => scene.report(context));
    after(() => scene.close());

    test('goes on with all claims, makes no volume twice, and deletes what is released', async (t) => {
      const { admin, namespace, driver } = scene;
      assert.equal(await minorOf(scene), newer);
      const className = await scene.createClass();
      await scene.createClaim({ className, name: 'before' });
      const { volume } = await scene.bound('before');
      const server = { rolledBack: false };
      const coming = createClaims({ scene, className, until: () => server.rolledBack, signal: t.signal });
      await scene.eventually(async () => assert.ok((await driver.volumeIds()).length >= 20));
      await scene.cluster.apiServer?.upgrade?.(older);
      server.rolledBack = true;
      assert.equal(await minorOf(scene), older);
      const names = await coming;
      await scene.deleteClaim('before');
      await scene.volumeGone(volume.metadata?.name ?? '');

      const claims = await scene.eventually(async () => {
        const { items } = await admin.core.listNamespacedPersistentVolumeClaim({ namespace });
        assert.deepEqual(
          items.filter(({ status }) => status?.phase !== 'Bound').map(({ metadata }) => metadata?.name),
          [],
        );
        assert.equal(items.length, names.length);
        return items;
      });
      const calls = await driver.calls('CreateVolume');
      assert.deepEqual(
        calls.map(({ request, code }) => `${request.name ?? ''} ${code}`).toSorted(),
        [volume.metadata?.name ?? '', ...claims.map(({ metadata }) => `pvc-${metadata?.uid ?? ''}`)]
          .map((name) => `${name} OK`)
          .toSorted(),
      );
      assert.equal((await driver.volumeIds()).length, claims.length);
      assert.ok(scene.sidecar.running());
    });
  },
);
