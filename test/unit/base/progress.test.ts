import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { progressLine } from '../../../src/base/progress.ts';

describe('progressLine', () => {
  function rig(columns?: number) {
    const written: string[] = [];
    let nowMs = 0;
    const progress = progressLine({
      write: (text) => written.push(text),
      columns,
      clock: { monotonicMs: () => nowMs },
    });
    return { written, progress, pass: (ms: number) => (nowMs += ms) };
  }

  test('draws one line again and again on a terminal, and leaves out what comes too soon', () => {
    const { written, progress, pass } = rig(10);
    progress.at('one');
    progress.at('too soon');
    pass(100);
    progress.at('longer than the terminal');
    assert.deepEqual(written, ['\r\u001b[Kone', '\r\u001b[Klonger th']);
    progress.clear();
    progress.clear();
    assert.deepEqual(written.slice(2), ['\r\u001b[K']);
    progress.at('after');
    assert.equal(written.length, 4);
  });

  test('writes a plain line every ten seconds where nobody watches', () => {
    const { written, progress, pass } = rig();
    progress.at('first');
    pass(9999);
    progress.at('too soon');
    progress.clear();
    pass(1);
    progress.at('second');
    assert.deepEqual(written, ['first\n', 'second\n']);
  });
});
