/**
 * nfs-subdir-external-provisioner with clients that go through NFS. What it has directories in is a volume of nfs-provisioner,
 * served by the real ganesha; it works in that folder itself, as a mount needs rights that a test may not have.
 */
import assert from 'node:assert/strict';
import { mkdir, open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { findNfsPrograms } from '../support/nfs/nfs-programs.ts';
import { isThere, type NamedClaim, NfsScene } from '../support/nfs/nfs-scene.ts';
import { startNfsSubdir } from '../support/nfs-subdir-process.ts';
import type { StartedProcess } from '../support/started-process.ts';

const programs = await findNfsPrograms();
const user = { uid: 1000, gid: 1000 };
/** Of a file with nothing in it, which no client has copied before it is stopped. */
const endlessBytes = 2 ** 32;

interface Served {
  readonly claim: NamedClaim;
  readonly volume: { metadata?: { name?: string } };
  /** As in the PersistentVolume; the same on the server's disk. */
  readonly path: string;
}

describe('what clients of nfs-subdir write through NFS', { skip: programs.missing ?? false }, () => {
  let scene: NfsScene;
  let program: StartedProcess;
  let share: { server: string; path: string };
  let archiving: string;
  let removing: string;

  const createClass = (parameters: Record<string, string>): Promise<string> =>
    scene.createClass(parameters, { provisioner: `${scene.provisioner}-subdir` });
  const serve = async (storageClass: string): Promise<Served> => {
    const claim = await scene.createClaim(storageClass);
    const volume = await scene.bound(claim);
    const { server, path = '' } = volume.spec?.nfs ?? {};
    assert.equal(server, share.server);
    assert.ok(path.startsWith(`${share.path}/`), path);
    return { claim, volume, path };
  };
  const deleteServed = async ({ claim, volume }: Served): Promise<void> => {
    await scene.deleteClaim(claim);
    await scene.gone(volume);
  };
  const archived = ({ path }: Served): string => path.replace(`${share.path}/`, `${share.path}/archived-`);
  /** Starts to copy a file that is too large to be copied soon, and stops the client amid it. */
  const readPart = async (file: string, target: string): Promise<StartedProcess> => {
    await using handle = await open(file, 'wx');
    await handle.truncate(endlessBytes);
    const copy = await scene.rig.startReading(file, target, user);
    await grows(copy, target, 0);
    process.kill(copy.pid, 'SIGSTOP');
    assert.ok((await stat(target)).size < endlessBytes);
    return copy;
  };
  const grows = async (copy: StartedProcess, target: string, size: number): Promise<void> => {
    const hopeless = (): string | undefined => (copy.running() ? undefined : copy.log());
    await eventually(async () => assert.ok((await stat(target)).size > size), { hopeless });
  };

  before(async () => {
    scene = await NfsScene.make(programs);
    await scene.start();
    const { spec } = await scene.bound(await scene.createClaim(await scene.createClass()));
    share = spec!.nfs!;
    program = await startNfsSubdir({
      NFS_SERVER: share.server,
      NFS_PATH: share.path,
      MOUNT_POINT: share.path,
      PROVISIONER_NAME: `${scene.provisioner}-subdir`,
      KUBECONFIG: scene.kubeconfig,
      POD_NAMESPACE: scene.namespace,
    });
    archiving = await createClass({});
    removing = await createClass({ archiveOnDelete: 'false' });
  });
  afterEach(async (context) => {
    if ('passed' in context && !context.passed) console.error(program.log(), await scene.rig.log());
  });
  after(async () => {
    await program.stop();
    await scene[Symbol.asyncDispose]();
  });

  test('lies in the directory of the claim, and in no other', async () => {
    const [one, other] = [await serve(removing), await serve(removing)];
    await scene.rig.write(join(one.path, 'letter'), 'through NFS', user);
    assert.equal(await readFile(join(one.path, 'letter'), 'utf8'), 'through NFS');
    assert.equal((await stat(join(one.path, 'letter'))).uid, user.uid);
    await writeFile(join(one.path, 'answer'), 'from the disk');
    assert.equal(await scene.rig.read(join(one.path, 'answer'), user), 'from the disk');
    assert.deepEqual(await scene.rig.list(one.path, user), ['answer', 'letter']);
    assert.deepEqual(await scene.rig.list(other.path, user), []);
    await scene.rig.write(join(other.path, 'letter'), 'of another', user);
    assert.equal(await scene.rig.read(join(one.path, 'letter'), user), 'through NFS');

    await deleteServed(one);
    assert.deepEqual(await scene.rig.list(other.path, user), ['letter']);
    assert.equal(await scene.rig.read(join(other.path, 'letter'), user), 'of another');
    await deleteServed(other);
  });

  test('is removed with the claim where archiveOnDelete is false, whoever owns it', async () => {
    const served = await serve(removing);
    await mkdir(join(served.path, 'deep/er'), { recursive: true, mode: 0o777 });
    await scene.rig.write(join(served.path, 'deep/er/of-root'), 'root');
    await scene.rig.write(join(served.path, 'of-user'), 'user', user);
    await deleteServed(served);
    assert.deepEqual(await readdir(share.path), ['.share-identity']);
    assert.deepEqual(await scene.rig.list(share.path), ['.share-identity']);
    await assert.rejects(scene.rig.list(served.path), /NFS4ERR_NOENT/);
    await assert.rejects(scene.rig.write(join(served.path, 'late'), 'too late'), /NFS4ERR_NOENT/);
  });

  test('is archived with the claim otherwise, and read at the new path', async () => {
    const served = await serve(archiving);
    await scene.rig.write(join(served.path, 'letter'), 'kept', user);
    await deleteServed(served);
    await assert.rejects(scene.rig.list(served.path), /NFS4ERR_NOENT/);
    assert.deepEqual(await scene.rig.list(archived(served), user), ['letter']);
    assert.equal(await scene.rig.read(join(archived(served), 'letter'), user), 'kept');
    assert.equal(await readFile(join(archived(served), 'letter'), 'utf8'), 'kept');
  });

  test('is not seen by the next claim that gets the same path', async () => {
    const storageClass = await createClass({ pathPattern: 'team/place' });
    const first = await serve(storageClass);
    await scene.rig.write(join(first.path, 'letter'), 'first', user);
    await deleteServed(first);
    const second = await serve(storageClass);
    assert.equal(second.path, first.path);
    assert.deepEqual(await scene.rig.list(second.path, user), []);
    await scene.rig.write(join(second.path, 'letter'), 'second', user);
    await deleteServed(second);
    const archive = join(share.path, 'archived-place');
    assert.equal(await scene.rig.read(join(archive, 'letter'), user), 'first');
    const { name = '' } = second.volume.metadata ?? {};
    assert.equal(await scene.rig.read(join(`${archive}-${name}`, 'letter'), user), 'second');
  });

  test('goes into the archive when the claim is deleted amid the write', async () => {
    const served = await serve(archiving);
    const write = await scene.rig.startWriting(join(served.path, 'letter'), 'a late text', user);
    assert.equal(await readFile(join(served.path, 'letter'), 'utf8'), '', 'the file is open, and nothing is written');
    await deleteServed(served);
    assert.equal(await write.release(), 'exit code 0');
    assert.equal(await scene.rig.read(join(archived(served), 'letter'), user), 'a late text');
    assert.equal(await isThere(served.path), false);
  });

  test('is read on from the archive when the claim is deleted amid the read', async () => {
    const served = await serve(archiving);
    const target = join(scene.rig.folder, 'read-on');
    const copy = await readPart(join(served.path, 'file'), target);
    await deleteServed(served);
    assert.equal(await isThere(served.path), false);
    assert.deepEqual(await scene.rig.list(archived(served), user), ['file']);
    const { size } = await stat(target);
    process.kill(copy.pid, 'SIGCONT');
    await grows(copy, target, size);
    await copy.stop('SIGKILL');
  });

  test('is removed though clients have it open, and nothing of it comes back', async () => {
    const served = await serve(removing);
    const write = await scene.rig.startWriting(join(served.path, 'letter'), 'a lost text', user);
    const copy = await readPart(join(served.path, 'file'), join(scene.rig.folder, 'read-lost'));
    const before = await readdir(share.path);
    await deleteServed(served);
    process.kill(copy.pid, 'SIGCONT');
    assert.match(await write.release(), /^exit code/);
    await copy.stop('SIGKILL');
    await assert.rejects(scene.rig.list(served.path), /NFS4ERR_NOENT/);
    const name = served.path.slice(share.path.length + 1);
    assert.deepEqual(
      await readdir(share.path),
      before.filter((each) => each !== name),
    );
  });

  test('is removed while clients add files, which they cannot any more then', async () => {
    const [served, other] = [await serve(removing), await serve(removing)];
    await scene.rig.write(join(other.path, 'letter'), 'of another', user);
    let count = 0;
    const stop = new AbortController();
    const writing = Array.from({ length: 2 }, async (_, writer) => {
      for (let file = 0; !stop.signal.aborted; file += 1) {
        await scene.rig.write(join(served.path, `file-${writer}-${file}`), 'text', user);
        count += 1;
      }
    });
    const ended = Promise.allSettled(writing);
    await eventually(() => assert.ok(count >= 5));
    await deleteServed(served).finally(() => stop.abort());
    await ended;
    assert.equal(await isThere(served.path), false);
    await assert.rejects(scene.rig.write(join(served.path, 'late'), 'text', user), /NFS4ERR_NOENT/);
    assert.equal(await scene.rig.read(join(other.path, 'letter'), user), 'of another');
    await deleteServed(other);
  });
});
