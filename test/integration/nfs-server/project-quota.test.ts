/** XFS project quota: with a fake `xfs_quota`, as hardly a test machine has such a file system. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { type Clock, type Logger, silentLogger } from '../../../src/index.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { FreezableFolder } from '../../support/frozen-folder.ts';
import { AtomicFile } from '../../../provisioners/nfs-server/atomic-file.ts';
import { ProjectQuota } from '../../../provisioners/nfs-server/project-quota.ts';
import { installXfsQuota, xfsMount } from './fake-xfs-quota.ts';

describe('project quota', () => {
  let folder: string;
  let mountPoint: string;
  let restorePath: () => void;

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'quota-'));
    mountPoint = path.join(folder, 'export');
    await mkdir(path.join(mountPoint, 'pvc-1'), { recursive: true });
    restorePath = await installXfsQuota(folder);
  });
  afterEach(async () => {
    restorePath();
    await rm(folder, { recursive: true });
  });

  const projects = (): Promise<string> => readFile(path.join(mountPoint, 'projects'), 'utf8');
  const linesOf = async (name: string): Promise<string[]> => {
    const text = await readFile(path.join(folder, name), 'utf8').catch(() => '');
    return text.split('\n').filter((line) => line !== '');
  };
  const calls = (): Promise<string[]> => linesOf('calls');
  const commandsRun = (count: number): Promise<void> =>
    eventually(async () => assert.equal((await linesOf('course')).filter((line) => line === 'begun').length, count));
  const open = async (
    mount = `xfs /dev/sdb rw,prjquota`,
    more: { clock?: Clock; logger?: Logger } = {},
  ): Promise<ProjectQuota> => {
    const mountInfo = await xfsMount(folder, { mountPoint, mount });
    const file = new AtomicFile(path.join(mountPoint, 'projects'));
    return ProjectQuota.open({ mountPoint, file, logger: silentLogger, ...more }, mountInfo);
  };

  test('is set by two commands, and stands in a file', async () => {
    const directory = path.join(mountPoint, 'pvc-1');
    const quota = await open();
    const project = await quota.set(directory, 1_048_576n);
    assert.deepEqual(project, { id: 1, block: `\n1:${directory}:1048576\n` });
    assert.equal(await projects(), project.block);
    const expected = [
      `-x -c project -s -p ${directory} 1 ${mountPoint}`,
      `-x -c limit -p bhard=1048576 1 ${mountPoint}`,
    ];
    assert.deepEqual(await calls(), expected);
    await quota.remove(directory);
    await quota.remove(directory);
    assert.equal(await projects(), '');
  });

  test('is set again at a start, and forgotten for directories that are gone', async () => {
    const directory = path.join(mountPoint, 'pvc-1');
    await writeFile(path.join(mountPoint, 'projects'), `\n4:${directory}:99\n\n5:${mountPoint}/gone:99\n`);
    const quota = await open();
    assert.equal(await projects(), `\n4:${directory}:99\n`);
    assert.equal((await calls())[1], `-x -c limit -p bhard=99 4 ${mountPoint}`);
    assert.equal((await quota.set(directory, 100n)).id, 4, 'it keeps its id');
  });

  test('leaves no line behind when the command fails', async () => {
    const quota = await open();
    await writeFile(path.join(folder, 'broken'), '');
    await assert.rejects(quota.set(path.join(mountPoint, 'pvc-1'), 5n), /xfs_quota -x -c .* failed: no such project/);
    assert.equal(await projects(), '');
  });

  test('is set for four volumes at a time at a start', async () => {
    const names = Array.from({ length: 9 }, (_, index) => `pvc-${index + 1}`);
    for (const name of names) await mkdir(path.join(mountPoint, name), { recursive: true });
    const file = names.map((name, index) => `\n${index + 1}:${mountPoint}/${name}:99\n`).join('');
    await writeFile(path.join(mountPoint, 'projects'), file);
    await writeFile(path.join(folder, 'hanging'), '');
    const opened = open();
    await commandsRun(4);
    await rm(path.join(folder, 'hanging'));
    await opened;
    let running = 0;
    let most = 0;
    for (const line of await linesOf('course')) {
      running += line === 'begun' ? 1 : -1;
      most = Math.max(most, running);
    }
    assert.equal(most, 4);
    assert.equal((await calls()).length, 18);
    assert.equal(await projects(), file);
  });

  test('does not keep the start waiting for ever: what hangs is reported, and killed after half an hour', async () => {
    const directory = path.join(mountPoint, 'pvc-1');
    await writeFile(path.join(mountPoint, 'projects'), `\n4:${directory}:99\n`);
    await writeFile(path.join(folder, 'hanging'), '');
    const clock = new ManualClock();
    const log: LogLine[] = [];
    const command = `xfs_quota -x -c "project -s -p ${directory} 4" ${mountPoint}`;
    const refused = assert.rejects(open(undefined, { clock, logger: recordedLogger(log) }), {
      message: `${command} failed: it did not end within 1800 s; check whether the file system hangs`,
    });
    await commandsRun(1);
    const warnings = (): LogLine[] => log.filter(({ level }) => level === 'warn');
    assert.deepEqual(warnings(), []);
    await clock.advance(30_000);
    assert.deepEqual(warnings(), [
      { level: 'warn', fields: { command }, message: 'A command of xfs_quota takes long' },
    ]);
    await clock.advance(30 * 60_000);
    await refused;
    assert.equal(clock.pending, 0);
    assert.equal((await calls()).length, 1);
  });

  test('gives up with the attempt that it is for, and leaves no line behind', async () => {
    const quota = await open();
    await writeFile(path.join(folder, 'hanging'), '');
    const attempt = new AbortController();
    const refused = assert.rejects(quota.set(path.join(mountPoint, 'pvc-1'), 5n, attempt.signal), /failed: stopping/);
    await commandsRun(1);
    attempt.abort(new Error('stopping'));
    await refused;
    assert.equal(await projects(), '');
  });

  test('ends the start with the first volume whose quota cannot be set', async () => {
    await mkdir(path.join(mountPoint, 'pvc-2'));
    const lines = ['pvc-1', 'pvc-2'].map((name, index) => `\n${index + 1}:${mountPoint}/${name}:99\n`);
    await writeFile(path.join(mountPoint, 'projects'), lines.join(''));
    await writeFile(path.join(folder, 'broken'), '');
    await assert.rejects(open(), /xfs_quota -x -c .* failed: no such project/);
    assert.equal(await projects(), lines.join(''), 'the next start tries again');
  });

  test('is forgotten, and set again at a start, while the disk is full; a read-only one starts, too', async (context) => {
    using disk = FreezableFolder.mount();
    if (disk === undefined) {
      context.skip('no file system can be mounted here');
      return;
    }
    mountPoint = disk.path;
    const [first, second, third] = ['pvc-1', 'pvc-2', 'pvc-3'].map((name) => path.join(mountPoint, name)) as [
      string,
      string,
      string,
    ];
    for (const directory of [first, second, third]) await mkdir(directory);
    const log: LogLine[] = [];
    const logger = recordedLogger(log);
    const quota = await open(undefined, { logger });
    await quota.set(first, 5n);
    await quota.set(second, 5n);
    await rm(first, { recursive: true });
    const full = { code: 'ENOSPC' };
    await mkdir(path.join(mountPoint, 'fill'));
    await disk.fill(path.join(mountPoint, 'fill'));
    await quota.remove(first);
    await assert.rejects(quota.set(third, 5n), full, 'a new volume would not survive a restart');
    assert.deepEqual([quota.has(first), quota.has(third)], [false, false]);
    const old = await projects();
    assert.match(old, /pvc-1:/);
    assert.equal((await open(undefined, { logger })).has(second), true);
    assert.equal((await calls()).at(-1), `-x -c limit -p bhard=5 2 ${mountPoint}`);
    await disk.remount('ro');
    const before = (await calls()).length;
    const reopened = await open(undefined, { logger });
    assert.equal((await calls()).length, before, 'XFS has the quotas, and could not write them');
    await disk.remount('rw');
    await rm(path.join(mountPoint, 'fill'), { recursive: true });
    assert.equal((await reopened.set(third, 5n)).id, 1);
    assert.equal(await projects(), `\n2:${second}:5\n\n1:${third}:5\n`);
    const warning = 'The projects file could not be written; this is tried again';
    assert.equal(log.filter(({ level, message }) => level === 'warn' && message === warning).length, 4);
  });

  test('refuses to start without the program', async () => {
    await rm(path.join(folder, 'bin/xfs_quota'));
    process.env['PATH'] = `${folder}/bin`;
    await assert.rejects(open(), {
      name: 'UsageError',
      message: /xfs_quota cannot be run; install xfsprogs \(xfs_quota -V failed: .*ENOENT/,
    });
  });

  for (const { title, mount, message } of [
    { title: 'the directory is no mount point', mount: '', message: /is not a mount point; mount XFS there/ },
    { title: 'it is another file system', mount: 'ext4 /dev/sdb rw', message: /is ext4, not xfs/ },
    { title: 'it is mounted without the option', mount: 'xfs /dev/sdb rw,noquota', message: /without project quota/ },
  ]) {
    test(`refuses to start where ${title}`, async () => {
      await assert.rejects(open(mount), { name: 'UsageError', message });
    });
  }
});
