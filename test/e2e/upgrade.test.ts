/** From the last release to this version and back, with records open and claims in flight. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1PersistentVolumeClaim } from '@kubernetes/client-node';
import { type FormerProgram, formerProgram } from '../support/former-program.ts';
import { openScene, type Scene } from '../support/scene.ts';
import { programFile } from '../support/program-file.ts';
import { canFakeHostName } from '../support/sidecar-process.ts';
import type { StartedProcess } from '../support/started-process.ts';

const skip = canFakeHostName() ? false : 'two Pods on one machine need `unshare --uts`, which is not permitted here';
const current = process.env['E2E_SIDECAR'] ?? `${process.execPath} ${programFile('csi-provisioner')}`;
const recordKey = /^csi-provisioner\.journal\/(?!shard$|shared-)/;
/** Of the claims of a change, so many have a call under way when it happens: as many as there are workers. */
const workers = 5;

describe('a change between the last release and this version', { skip }, () => {
  let scene: Scene;
  let former: FormerProgram;
  let running: StartedProcess;
  let className: string;
  before(async () => {
    former = await formerProgram(current);
    scene = await openScene({
      program: former.command,
      hostName: 'pod-0',
      rbac: ['components/leader-election/rbac.yaml'],
      sidecarFlags: [
        '--timeout=4s',
        '--leader-election',
        '--leader-election-lease-duration=5s',
        '--leader-election-renew-deadline=4s',
        '--leader-election-retry-period=500ms',
        `--worker-threads=${workers}`,
      ],
    });
    running = scene.sidecar;
    className = await scene.createClass();
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());
  after(() => former[Symbol.asyncDispose]());

  /** Claims whose volumes are open records, as operators read them. */
  async function recorded(): Promise<string[]> {
    const { items } = await scene.admin.coordination.listNamespacedLease({ namespace: scene.cluster.sidecarNamespace });
    const lease = `${scene.driver.driverName.replaceAll('.', '-')}-journal-`;
    return items
      .filter(({ metadata }) => metadata?.name?.startsWith(lease))
      .flatMap(({ metadata }) => Object.keys(metadata?.annotations ?? {}))
      .filter((key) => recordKey.test(key));
  }

  async function createClaims(count: number): Promise<V1PersistentVolumeClaim[]> {
    return await Promise.all(Array.from({ length: count }, () => scene.createClaim({ className })));
  }

  /** The volumes of the driver are those of the PersistentVolumes, one for each claim, and no record is left open. */
  async function settled(claims: readonly V1PersistentVolumeClaim[]): Promise<void> {
    const bound = await Promise.all(claims.map(({ metadata }) => scene.bound(metadata?.name ?? '')));
    const handles = bound.map(({ volume }) => volume.spec?.csi?.volumeHandle ?? '').toSorted();
    assert.equal(new Set(handles).size, claims.length);
    await scene.eventually(async () => {
      assert.deepEqual((await scene.driver.volumeIds()).toSorted(), handles);
      assert.deepEqual(await recorded(), []);
    });
  }

  /**
   * Claims are in flight and their records open; some claims are deleted while one program ends and the other takes over.
   *
   * @returns the claims that are left.
   */
  async function change(
    to: string,
    { hostName, signal, standing }: { hostName: string; signal: NodeJS.Signals; standing: V1PersistentVolumeClaim[] },
  ): Promise<V1PersistentVolumeClaim[]> {
    const before = (await scene.driver.volumeIds()).length;
    await scene.driver.setFaults([{ method: 'CreateVolume', hold: true, after: true }]);
    const claims = await createClaims(3 * workers);
    await scene.eventually(async () => {
      assert.equal((await scene.driver.volumeIds()).length, before + workers);
      assert.ok((await recorded()).length >= workers, 'their records are open');
    });
    const ended = running.stop(signal);
    const [unwanted, left] = [claims.slice(0, 4), claims.slice(4)];
    const released = standing.slice(0, 2);
    for (const { metadata } of [...unwanted, ...released]) await scene.deleteClaim(metadata?.name ?? '');
    await ended;
    running = await scene.startSidecar([], hostName, to);
    await scene.driver.setFaults([]);
    const all = [...standing.slice(2), ...left, ...(await createClaims(3))];
    await settled(all);
    return all;
  }

  test('loses, leaks and doubles nothing: killed, upgraded, rolled back, upgraded by a rolling update', async (t) => {
    t.diagnostic(`from: ${former.title}`);
    let standing = await createClaims(6);
    await settled(standing);
    standing = await change(current, { hostName: 'pod-1', signal: 'SIGKILL', standing });
    standing = await change(former.command, { hostName: 'pod-2', signal: 'SIGKILL', standing });
    standing = await change(current, { hostName: 'pod-3', signal: 'SIGTERM', standing });
    standing = await change(former.command, { hostName: 'pod-4', signal: 'SIGTERM', standing });
    for (const { metadata } of standing) await scene.deleteClaim(metadata?.name ?? '');
    await settled([]);
  });
});
