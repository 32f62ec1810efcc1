/** Two processes of nfs-provisioner on one export directory, as in a rolling update. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { exportsIn } from '../../provisioners/nfs-server/ganesha-config.ts';
import { eventually } from '../support/eventually.ts';
import { findNfsPrograms } from '../support/nfs/nfs-programs.ts';
import { isThere, type NamedClaim, NfsScene } from '../support/nfs/nfs-scene.ts';
import type { StartedProcess } from '../support/started-process.ts';

const programs = await findNfsPrograms();
const waits = 'Another nfs-provisioner has locked the export directory: waiting until it ends';
const isAcquired = 'Acquired the lock on the export directory';

for (const { title, args } of [
  { title: 'without an election', args: [] },
  { title: 'with an election', args: ['-leader-elect=true'] },
]) {
  describe(`two processes on one export directory, ${title}`, { skip: programs.missing ?? false }, () => {
    let scene: NfsScene;
    let storageClass: string;
    const both: StartedProcess[] = [];
    const served: NamedClaim[] = [];

    before(async () => {
      scene = await NfsScene.make(programs);
      for (let process = 0; process < 2; process++) {
        await scene.start(args); // does not wait: they begin at once, on an empty directory
        both.push(scene.program);
      }
      storageClass = await scene.createClass();
    });
    afterEach(async (context) => {
      if ('passed' in context && !context.passed) console.error(await scene.rig.log());
    });
    after(() => scene[Symbol.asyncDispose]());

    const serve = async (count: number): Promise<void> => {
      const claims = await Promise.all(Array.from({ length: count }, () => scene.createClaim(storageClass)));
      for (const claim of claims) await scene.bound(claim);
      served.push(...claims);
    };
    /** Each volume has one export, of an id of its own, and can be read; there is nothing else. */
    const allServedOnce = async (): Promise<void> => {
      const wanted = served.map((claim) => scene.directory(claim)).sort();
      const entries = exportsIn(await scene.config()).filter(({ id }) => id !== 0);
      assert.deepEqual(entries.map(({ path }) => path).sort(), wanted);
      assert.equal(new Set(entries.map(({ id }) => id)).size, wanted.length);
      const directories = (await readdir(scene.rig.exports)).filter((name) => name.startsWith('pvc-'));
      assert.deepEqual(
        directories.sort(),
        wanted.map((each) => basename(each)),
      );
      await scene.waitFor(async () => {
        for (const directory of wanted) await scene.rig.list(directory);
      });
    };

    const other = (process: StartedProcess): StartedProcess => both.find((each) => each !== process)!;
    /** The one that waits for the other, which is followed from now on. */
    const waiting = (): Promise<StartedProcess> =>
      eventually(() => {
        const found = both.find(
          (each) => each.running() && each.log().includes(waits) && !each.log().includes(isAcquired),
        );
        assert.ok(found);
        scene.program = other(found);
        return found;
      });

    test('serve through one of them, and the other does nothing', async () => {
      await serve(8);
      await allServedOnce();
      const { admin, provisioner } = scene;
      const { items } = await admin.core.listPersistentVolume();
      const annotations = items.map(({ metadata }) => metadata?.annotations ?? {});
      const own = annotations.filter((each) => each['pv.kubernetes.io/provisioned-by'] === provisioner);
      const identity = await readFile(join(scene.rig.exports, 'nfs-provisioner.identity'), 'utf8');
      assert.deepEqual([...new Set(own.map((each) => each['Provisioner_Id']))], [identity]);
      assert.doesNotMatch((await waiting()).log(), /Starting nfs-provisioner/);
    });

    test('continue with the other once the first is killed, and nothing is lost or exported twice', async () => {
      const second = await waiting();
      const first = other(second);
      const ganesha = await scene.ganeshaPid();
      const claims = await Promise.all(Array.from({ length: 8 }, () => scene.createClaim(storageClass)));
      await first.stop('SIGKILL');
      scene.program = second;
      for (const claim of claims) await scene.bound(claim);
      served.push(...claims);
      assert.notEqual(await scene.ganeshaPid(), ganesha);
      assert.ok(second.log().includes(isAcquired));
      const [removed] = served.splice(0, 1);
      await scene.deleteClaim(removed!);
      await eventually(async () => assert.equal(await isThere(scene.directory(removed!)), false));
      await serve(1);
      await allServedOnce();
    });

    test('stops waiting when it is terminated', async () => {
      const working = scene.program;
      await scene.start(args);
      both.splice(0, 2, working, scene.program);
      const late = await waiting();
      await late.stop('SIGTERM');
      assert.equal(await late.ending(), 'exit code 0');
      await allServedOnce();
    });
  });
}
