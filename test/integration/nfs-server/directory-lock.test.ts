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

  test('is had by one at a time: the other waits, says so once, and has it next', async () => {
    const first = await lock();
    assert.ok(first.isHeld);
    const waiting = lock();
    await eventually(() => assert.equal(messages().length, 1));
    await first[Symbol.asyncDispose]();
    await using _second = await waiting;
    assert.deepEqual(messages(), [
      'Another nfs-provisioner uses the export directory: waiting for its end',
      'The export directory is free',
    ]);
    assert.deepEqual(await readdir(directory), [], 'nothing is written');
  });

  test('can be given up', async () => {
    await using _first = await lock();
    const ending = new AbortController();
    const waiting = lock(ending.signal);
    await eventually(() => assert.equal(messages().length, 1));
    ending.abort(new Error('enough'));
    await assert.rejects(waiting, { message: 'enough' });
  });

  test('is missing, with a warning, where there is no flock', async () => {
    const { PATH } = process.env;
    process.env['PATH'] = directory;
    try {
      await using unlocked = await lock();
      assert.ok(!unlocked.isHeld);
    } finally {
      process.env['PATH'] = PATH;
    }
    assert.match(messages().join(), /could not be locked: take care that no other process uses it/);
  });
});
