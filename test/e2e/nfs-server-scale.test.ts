/**
 * Many exports of one nfs-provisioner: made at once, served after a kill, restored, deleted at once. It prints how long that takes.
 * `NFS_EXPORTS` sets how many, up to 10,000.
 */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { after, afterEach, before, describe, test, type TestContext } from 'node:test';
import type { V1PersistentVolume } from '@kubernetes/client-node';
import { exportsIn } from '../../provisioners/nfs-server/ganesha-config.ts';
import { findNfsPrograms } from '../support/nfs/nfs-programs.ts';
import { isThere, type NamedClaim, NfsScene } from '../support/nfs/nfs-scene.ts';
import { patienceMs } from '../support/patience.ts';

const programs = await findNfsPrograms();
const count = Number(process.env['NFS_EXPORTS'] ?? 200);
/** Ganesha reads its whole configuration for each new export, so that many take longer than in proportion. */
const waiting = { withinMs: patienceMs * Math.max(1, (count / 200) ** 2) };

describe(`${count} exports of nfs-provisioner`, { skip: programs.missing ?? false }, () => {
  let scene: NfsScene;
  let storageClass: string;
  let claims: NamedClaim[] = [];
  const volumes: V1PersistentVolume[] = [];

  before(async () => {
    scene = await NfsScene.make(programs);
    await scene.start();
    storageClass = await scene.createClass();
  });
  afterEach(async (context) => {
    if ('passed' in context && !context.passed) console.error((await scene.rig.log()).slice(-20_000));
  });
  after(() => scene[Symbol.asyncDispose]());

  const create = (number: number): Promise<NamedClaim[]> =>
    forEach(Array.from({ length: number }), 50, () => scene.createClaim(storageClass));
  const volumesOfClass = async (): Promise<V1PersistentVolume[]> => {
    const { items } = await scene.admin.core.listPersistentVolume();
    return items.filter(({ spec }) => spec?.storageClassName === storageClass);
  };
  /** Names of directories of volumes; asked often, which must not cost the server much. */
  const directories = async (): Promise<string[]> =>
    (await readdir(scene.rig.exports)).filter((name) => name.startsWith('pvc-'));
  /** Directories that stand in the configuration. */
  const listed = async (): Promise<Set<string>> => new Set(exportsIn(await scene.config()).map(({ path }) => path));
  /** What of these a client can mount; two clients at a time, as each is a process. */
  const mountable = async (wanted: readonly NamedClaim[]): Promise<number> => {
    let served = 0;
    await forEach(wanted, 2, (claim) => scene.rig.list(scene.directory(claim)).then(() => (served += 1)));
    return served;
  };

  test('are made by claims that come at once, each with an id of its own', async (context) => {
    const stopwatch = await Stopwatch.start(scene.program.pid);
    claims = await create(count);
    await scene.waitFor(async () => assert.equal((await directories()).length, count), waiting);
    await scene.waitFor(async () => assert.equal((await volumesOfClass()).length, count));
    await stopwatch.report(context, `${count} volumes made, from the first claim on,`);
    for (const claim of claims) volumes.push(await scene.bound(claim));
    const ids = volumes.map(({ metadata }) => Number(metadata?.annotations?.['Export_Id']));
    assert.equal(new Set(ids).size, count);
    assert.ok(!ids.includes(152), 'the file system id of the pseudo root');
    assert.deepEqual(await listed(), new Set(claims.map((claim) => scene.directory(claim))));
    assert.equal(await mountable(claims), count);
  });

  test('are all served again after ganesha was killed', async (context) => {
    const old = await scene.ganeshaPid();
    const stopwatch = await Stopwatch.start(scene.program.pid);
    process.kill(old, 'SIGKILL');
    const servedAgain = /All exports are served/g;
    const times = (): number => scene.program.log().match(servedAgain)?.length ?? 0;
    const before = times();
    await scene.waitFor(() => assert.ok(times() > before), waiting);
    await stopwatch.report(context, `${count} exports served again`);
    assert.equal(await mountable(claims), count);
  });

  test('are restored from their PersistentVolumes after the configuration lost all of them', async (context) => {
    await scene.program.stop();
    await scene.rig.writeConfig();
    await scene.start();
    const stopwatch = await Stopwatch.start(scene.program.pid);
    await scene.waitFor(() => assert.match(scene.program.log(), /Exports that were lost have been restored/), waiting);
    await stopwatch.report(context, `${count} exports restored`);
    assert.equal(await mountable(claims), count);
    assert.equal(exportsIn(await scene.config()).length, count);
  });

  test('come and go at once, and exactly the live ones are exported', async () => {
    const going = claims.splice(0, 10);
    const [coming] = await Promise.all([create(20), ...going.map((claim) => scene.deleteClaim(claim))]);
    for (const claim of coming) volumes.push(await scene.bound(claim));
    for (const claim of going) await scene.gone({ metadata: { name: `pvc-${claim.uid}` } });
    claims.push(...coming);
    assert.deepEqual(await listed(), new Set(claims.map((claim) => scene.directory(claim))));
    for (const claim of going) await assert.rejects(scene.rig.list(scene.directory(claim)));
    assert.equal(await mountable(coming), coming.length);
  });

  test('go with their claims, and nothing is left', async (context) => {
    const stopwatch = await Stopwatch.start(scene.program.pid);
    await forEach(claims, 50, (claim) => scene.deleteClaim(claim));
    await scene.waitFor(async () => assert.equal((await directories()).length, 0), waiting);
    await scene.waitFor(async () => assert.equal((await volumesOfClass()).length, 0));
    await stopwatch.report(context, `${claims.length} volumes deleted`);
    assert.equal((await listed()).size, 0);
    for (const claim of claims.slice(0, 3)) assert.equal(await isThere(scene.directory(claim)), false);
  });
});

/** Does something with each, so many at a time: a thousand connections at once would run into the time limits of clients. */
async function forEach<T, R>(all: readonly T[], atOnce: number, work: (each: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const rest = all.values();
  const worker = async (): Promise<void> => {
    for (const each of rest) results.push(await work(each));
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}

/** Time on the clock, and time that a process computed. */
class Stopwatch {
  readonly #pid: number;
  readonly #startedMs = performance.now();
  readonly #cpuMs: number;

  private constructor(pid: number, cpuMs: number) {
    this.#pid = pid;
    this.#cpuMs = cpuMs;
  }

  static async start(pid: number): Promise<Stopwatch> {
    return new Stopwatch(pid, await cpuMs(pid));
  }

  async report(context: TestContext, what: string): Promise<void> {
    const seconds = ((performance.now() - this.#startedMs) / 1000).toFixed(1);
    context.diagnostic(
      `${what} in ${seconds} s, of which nfs-provisioner computed ${(await cpuMs(this.#pid)) - this.#cpuMs} ms`,
    );
  }
}

/** What the kernel counts for a process, in user and system mode (proc(5), `stat`). */
async function cpuMs(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
