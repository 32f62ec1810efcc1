import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TaskGroup } from '../../../src/base/task-group.ts';

/** Ends when its signal aborts, but only after the given promise. */
async function untilEnded(signal: AbortSignal, last: Promise<unknown> = Promise.resolve(undefined)): Promise<void> {
  await new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', resolve, { once: true });
  });
  await last;
}

describe('a task group', () => {
  test('has ended when its last task has', async () => {
    const group = new TaskGroup();
    const first = Promise.withResolvers<undefined>();
    const second = Promise.withResolvers<undefined>();
    group.start(() => first.promise);
    group.start(() => second.promise);
    let ended = false;
    const whole = group.ended().then(() => (ended = true));
    first.resolve(undefined);
    await first.promise;
    await new Promise(setImmediate);
    assert.equal(ended, false);
    assert.equal(group.signal.aborted, false, 'a task that is done ends no other');
    second.resolve(undefined);
    await whole;
  });

  test('is over at once without tasks', async () => {
    await new TaskGroup().ended();
  });

  test('waits for tasks that other tasks start', async () => {
    const group = new TaskGroup();
    const late = Promise.withResolvers<undefined>();
    const started: string[] = [];
    group.start(async () => {
      await Promise.resolve();
      group.start(() => {
        started.push('late');
        return late.promise;
      });
    });
    const whole = group.ended().then(() => started.push('ended'));
    await new Promise(setImmediate);
    assert.deepEqual(started, ['late']);
    late.resolve(undefined);
    await whole;
  });

  test('ends the others at the first failure, waits for them, and then throws it', async () => {
    const group = new TaskGroup();
    const cleanedUp = Promise.withResolvers<undefined>();
    const failure = new Error('no room');
    group.start((signal) => untilEnded(signal, cleanedUp.promise));
    group.start(() => Promise.reject(failure));
    let thrown: unknown;
    const whole = group.ended().catch((error: unknown) => (thrown = error));
    await new Promise(setImmediate);
    assert.equal(group.signal.reason, failure);
    assert.equal(thrown, undefined, 'the other task still cleans up');
    cleanedUp.resolve(undefined);
    await whole;
    assert.equal(thrown, failure);
  });

  test('takes a task that throws before it waits for a failed one', async () => {
    const group = new TaskGroup();
    group.start(() => {
      throw new Error('at once');
    });
    await assert.rejects(group.ended(), { message: 'at once' });
    await assert.rejects(group.ended(), { message: 'at once' }, 'and says so again');
  });

  test('throws the first of several failures', async () => {
    const group = new TaskGroup();
    group.start(() => Promise.reject(new Error('first')));
    group.start(async (signal) => {
      await untilEnded(signal);
      throw new Error('a consequence');
    });
    await assert.rejects(group.ended(), { message: 'first' });
  });

  test('ends when a parent does, and the reason is no failure', async () => {
    const parent = new AbortController();
    const group = new TaskGroup(new AbortController().signal, parent.signal);
    group.start(async (signal) => {
      await untilEnded(signal);
      throw signal.reason;
    });
    group.start(untilEnded);
    parent.abort(new Error('SIGTERM'));
    await group.ended();
  });

  test('reports what fails while it ends', async () => {
    const parent = new AbortController();
    const group = new TaskGroup(parent.signal);
    group.start(async (signal) => {
      await untilEnded(signal);
      throw new Error('not released');
    });
    parent.abort();
    await assert.rejects(group.ended(), { message: 'not released' });
  });

  test('can be ended from within', async () => {
    const group = new TaskGroup();
    group.start(untilEnded);
    group.abort(new Error('the work is done'));
    await group.ended();
  });
});
