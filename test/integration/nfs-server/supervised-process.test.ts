import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { textLogger } from '../../../src/index.ts';
import { SupervisedProcess, type SupervisedOptions } from '../../../provisioners/nfs-server/supervised-process.ts';
import { eventually } from '../../support/eventually.ts';

describe('a supervised program', () => {
  let folder: string;
  let log = '';
  const logger = textLogger({ write: (line) => void (log += line) });
  const supervise = (script: string, more: Partial<SupervisedOptions> = {}): SupervisedProcess => {
    log = '';
    return new SupervisedProcess({ name: 'program', command: ['sh', '-c', script], logger, ...more });
  };
  const isAlive = (pid: number): boolean => {
    try {
      process.kill(pid, 0);
      return true;
    } catch {
      return false;
    }
  };

  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'supervised-'));
  });
  after(() => rm(folder, { recursive: true }));

  test('is started again when it ends, and the log has its last words', async () => {
    let ready = 0;
    const spoken = path.join(folder, 'spoken');
    const script = `echo no more memory >&2; echo >${spoken}; exec sleep 60`;
    await using program = supervise(script, { onReady: () => (ready += 1) });
    await eventually(() => readFile(spoken));
    const { pid = 0 } = program;
    process.kill(pid, 'SIGKILL');
    await eventually(() => assert.equal(ready, 2));
    assert.ok(program.isReady);
    assert.equal(program.restarts, 1);
    assert.match(log, /has ended program=program how="signal SIGKILL: no more memory" retryInMs=1000/);
  });

  test('is ready once its probe succeeds, not before', async () => {
    const file = path.join(folder, 'ready');
    await using program = supervise('sleep 5 & wait', {
      probe: async () => {
        await readFile(file);
      },
    });
    await eventually(() => assert.notEqual(program.pid, undefined));
    assert.equal(program.isReady, false);
    await writeFile(file, '');
    await program.whenReady();
    assert.equal(program.isReady, true);
  });

  test('is killed and started again when it stays silent, and says so meanwhile', async () => {
    let answers = true;
    let ready = 0;
    const nextLife = Promise.withResolvers<undefined>();
    await using program = supervise('exec sleep 60', {
      probe: async () => {
        if (!answers) await nextLife.promise;
      },
      liveness: { intervalMs: 20, silentMs: 200, mayKill: () => Promise.resolve(true) },
      onReady: () => (ready += 1),
    });
    await program.whenReady();
    assert.equal(program.problem, undefined);
    const { pid = 0 } = program;
    answers = false;
    await eventually(() => assert.match(program.problem ?? '', /^program has not responded for \d+ s$/));
    assert.equal(program.isReady, false);
    await eventually(() => assert.equal(isAlive(pid), false));
    await eventually(() => assert.match(program.problem ?? '', /has ended and is started again|has not responded/));
    nextLife.resolve(undefined);
    await program.whenReady();
    assert.equal(program.problem, undefined);
    assert.deepEqual([program.restarts, ready], [1, 2]);
    assert.match(log, /stays silent and is killed program=program/);
  });

  test('is left alone while a new start would not help, and answers again', async () => {
    let answers = true;
    let asked = 0;
    const mayKill = (): Promise<boolean> => Promise.resolve((asked += 1) < 0);
    await using program = supervise('exec sleep 60', {
      probe: () => (answers ? Promise.resolve() : Promise.reject(new Error('silent'))),
      liveness: { intervalMs: 20, silentMs: 60, mayKill },
    });
    await program.whenReady();
    const { pid } = program;
    answers = false;
    await eventually(() => assert.ok(asked > 3));
    assert.deepEqual([program.isReady, program.pid], [false, pid]);
    answers = true;
    await program.whenReady();
    assert.deepEqual([program.problem, program.pid, program.restarts], [undefined, pid, 0]);
  });

  test('ends with its supervision', async () => {
    const program = supervise('exec sleep 60');
    await program.whenReady();
    const { pid = 0 } = program;
    await program[Symbol.asyncDispose]();
    assert.equal(isAlive(pid), false);
    assert.equal(program.isReady, false);
  });

  test('is not waited for at the end, when it was never to be started', async () => {
    const program = supervise('true', { prepare: () => new Promise<void>(() => undefined) });
    await program[Symbol.asyncDispose]();
    assert.equal(program.pid, undefined);
  });

  test('is tried again when it is missing', async () => {
    await using _program = supervise('', { command: ['/nonexistent/program'] });
    await eventually(() =>
      assert.match(log, /has ended program=program how=.*\/nonexistent\/program.* retryInMs=2000/),
    );
  });
});
