import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { ApiException, type V1PersistentVolumeClaim } from '@kubernetes/client-node';
import type { Admin } from '../support/admin.ts';
import { builtPrograms } from '../support/control-plane/programs.ts';
import type { Scene } from '../support/scene.ts';

/** Why a test that needs several versions cannot run here, whichever of them the other files are running on. */
export async function missingVersion(minors: readonly string[]): Promise<string | false> {
  if (process.env['E2E_TARGET'] !== 'kubernetes') return 'the sandbox is of one version';
  for (const minor of minors) {
    if ((await builtPrograms({ minor })) === undefined) return `Kubernetes ${minor} is not compiled here`;
  }
  return false;
}

/** The minor version of an API server, such as `1.32`. */
export async function minorOf(admin: Admin): Promise<string> {
  const { gitVersion } = await admin.version.getCode();
  return gitVersion.replace(/^v|\.\d+$/g, '');
}

/**
 * Creates one claim after the other, also while the API server is away, and 20 more once `until` says so.
 *
 * @returns their names.
 */
export async function createClaims(options: {
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

/** Waits until the namespace has so many claims, all of them bound. @returns them. */
export async function allBound({ scene, count }: { scene: Scene; count: number }): Promise<V1PersistentVolumeClaim[]> {
  const { admin, namespace } = scene;
  return await scene.eventually(async () => {
    const { items } = await admin.core.listNamespacedPersistentVolumeClaim({ namespace });
    assert.deepEqual(
      items.filter(({ status }) => status?.phase !== 'Bound').map(({ metadata }) => metadata?.name),
      [],
    );
    assert.equal(items.length, count);
    return items;
  });
}

/**
 * Asserts that the driver was asked once for the volume of each of these claims, and of the deleted ones, and for no other;
 * and that it has storage for these claims alone.
 *
 * @param options.deleted - names of the volumes whose claims are deleted.
 */
export async function assertMadeOnce(options: {
  scene: Scene;
  claims: readonly V1PersistentVolumeClaim[];
  deleted: readonly string[];
}): Promise<void> {
  const { scene, claims, deleted } = options;
  const calls = await scene.driver.calls('CreateVolume');
  assert.deepEqual(
    calls.map(({ request, code }) => `${request.name ?? ''} ${code}`).toSorted(),
    [...deleted, ...claims.map(({ metadata }) => `pvc-${metadata?.uid ?? ''}`)].map((name) => `${name} OK`).toSorted(),
  );
  assert.equal((await scene.driver.volumeIds()).length, claims.length);
  assert.ok(scene.sidecar.running());
}
