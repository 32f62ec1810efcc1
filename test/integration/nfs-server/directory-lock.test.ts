/** The lock of the export directory, with the kernel's flock(2). */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { type ExportDirectoryLock, lockDirectory } from '../../../provisioners/nfs-server/directory-lock.ts';
import { eventually } from '../../support/eventually.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';

describe('the lock of an export directory', () => {
  let directory: string;
  let log: LogLine[];
  const { signal } = new AbortController();
  const lock = (until = signal): Promise<ExportDirectoryLock> =>
    lockDirectory(directory, { signal: until, logger: recordedLogger(log) });
  const messages = (): string[] => log.map(({ message }) => message);

  beforeEach(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'lock-'));
    log = [];
  });
  afterEach(() => rm(directory, { recursive: true }));

  test('is held by one process at a time: another one waits, logs that once, and acquires it next', async () => {
    const first = await lock();
    assert.ok(first.isHeld);
    const waiting = lock();
    await eventually(() => assert.equal(messages().length, 1));
    await first[Symbol.asyncDispose]();
    await using _second = await waiting;
    assert.deepEqual(messages(), [
      'Another nfs-provisioner has locked the export directory: waiting until it ends',
      'Acquired the lock on the export directory',
    ]);
    assert.deepEqual(await readdir(directory), [], 'nothing is written');
  });

  test('is no longer waited for once the signal aborts', async () => {
    await using _first = await lock();
    const ending = new AbortController();
    const waiting = lock(ending.signal);
    await eventually(() => assert.equal(messages().length, 1));
    ending.abort(new Error('enough'));
    await assert.rejects(waiting, { message: 'enough' });
  });

  test('is not taken, with a warning, where flock is not installed', async () => {
    const { PATH } = process.env;
    process.env['PATH'] = directory;
    try {
      await using unlocked = await lock();
      assert.ok(!unlocked.isHeld);
    } finally {
      process.env['PATH'] = PATH;
    }
    assert.match(messages().join(), /could not be locked: make sure that no other process uses it/);
  });
});
