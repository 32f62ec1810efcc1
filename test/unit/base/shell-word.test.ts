import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { shellCommand } from '../../../src/base/shell-word.ts';

describe('a command to copy', () => {
  for (const [words, want] of [
    [['kubectl', 'describe', 'pv', 'pvc-1'], 'kubectl describe pv pvc-1'],
    [['audit', '--delete=pool/a#b c'], "audit --delete='pool/a#b c'"],
    [['audit', '--delete=-x'], "audit --delete='-x'"],
    [['x', '-w'], 'x -w'],
    [['x', ''], "x ''"],
    [['x', 'a\nb'], undefined],
    [['x', '--delete=\u202e'], undefined],
  ] as const) {
    test(`of ${JSON.stringify(words)} is ${String(want)}`, () => assert.equal(shellCommand(words), want));
  }

  test('gives a shell the very words', () => {
    const words = ["it's", '$(reboot)', '`id`', '"', '\\', '!!', '*', '~', '--delete=$HOME & x', '#', 'a=b', '=ls'];
    const command = shellCommand(['printf', '%s|', ...words]);
    assert.equal(
      execFileSync('/bin/sh', ['-c', command ?? ''], { encoding: 'utf8' }),
      words.map((each) => `${each}|`).join(''),
    );
  });
});
