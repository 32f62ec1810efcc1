import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { describe, test } from 'node:test';
import { SecretString } from '../../../src/base/secret-string.ts';
import { textLogger, type TextLoggerOptions } from '../../../src/base/text-logger.ts';

/** The lines without the times in front. */
function recorded(options: TextLoggerOptions = {}) {
  const lines: string[] = [];
  const logger = textLogger({
    ...options,
    write: (line) => {
      assert.match(line, /^\d\d:\d\d:\d\d\.\d{3} /);
      lines.push(line.slice(13));
    },
  });
  return { lines, logger };
}

describe('textLogger', () => {
  test('writes level, message and fields on one line', () => {
    const { lines, logger } = recorded();
    logger.info({ volume: 'pvc-1', attempt: 2, ready: true, nothing: undefined }, 'Storage deleted');
    assert.deepEqual(lines, ['info  Storage deleted volume=pvc-1 attempt=2 ready=true\n']);
  });

  test('quotes texts that would be misread, and keeps one line whatever is in them', () => {
    const { lines, logger } = recorded();
    logger.warn({ a: 'two words', b: '', c: 'x=y', d: 'line\nbreak', e: { f: ['g\nh'] }, n: 5n }, 'Hm\nhm');
    assert.deepEqual(lines, [
      String.raw`warn  Hm hm a="two words" b="" c="x=y" d="line\nbreak" e={ f: [ 'g\nh' ] } n=5n` + '\n',
    ]);
  });

  test('keeps the line breaks of a rule to copy', () => {
    const { lines, logger } = recorded();
    logger.error({ verb: 'list', addRule: '- apiGroups: [""]\n  verbs: ["list"]' }, 'Not permitted');
    assert.deepEqual(lines, ['error Not permitted verb=list addRule=\n  - apiGroups: [""]\n    verbs: ["list"]\n']);
  });

  test('gives the message of an error, and its stack at the level trace only', () => {
    const error = new Error('no room');
    const brief = recorded();
    brief.logger.error({ err: error }, 'Failed');
    assert.deepEqual(brief.lines, ['error Failed err=no room\n']);
    const detailed = recorded({ level: 'trace' });
    detailed.logger.error({ err: error }, 'Failed');
    assert.match(detailed.lines[0] ?? '', /^error Failed err="Error: no room\\n +at .*text-logger\.test\.ts.*"\n$/);
  });

  test('gives the words of an error last and unescaped, on one line and without control characters', () => {
    const { lines, logger } = recorded();
    const error = new Error('PersistentVolume "v" is invalid:\nspec: Required value\u001b[2J\u009b2J');
    logger.warn({ err: error, volume: 'v' }, 'Failed');
    assert.deepEqual(lines, [
      String.raw`warn  Failed volume=v err=PersistentVolume "v" is invalid: spec: Required value\u001b[2J\u009b2J` +
        '\n',
    ]);
  });

  test('never gives a secret away', () => {
    const { lines, logger } = recorded();
    logger.info({ password: SecretString.fromText('hunter2') }, 'Read');
    assert.equal(lines.length, 1);
    assert.doesNotMatch(lines[0] ?? '', /hunter2/);
  });

  for (const [level, shown] of [
    ['error', ['error']],
    [undefined, ['error', 'warn', 'info']],
    ['debug', ['error', 'warn', 'info', 'debug']],
    ['trace', ['error', 'warn', 'info', 'debug', 'trace']],
  ] as const) {
    test(`level ${level ?? 'by default'}: ${shown.join(', ')}`, () => {
      const { lines, logger } = recorded(level === undefined ? {} : { level });
      for (const name of ['error', 'warn', 'info', 'debug', 'trace'] as const) logger[name]({}, 'Message');
      assert.deepEqual(
        lines.map((line) => line.trim().split(/\s+/)[0]),
        shown,
      );
    });
  }

  test('a child adds its fields to each line', () => {
    const { lines, logger } = recorded();
    const child = logger.child({ driver: 'd' }).child({ claim: 'ns/a' });
    child.info({ claim: 'ns/b' }, 'Message');
    assert.deepEqual(lines, ['info  Message driver=d claim=ns/b\n']);
  });

  test('writes to standard error by default', () => {
    const module = path.join(import.meta.dirname, '../../../src/base/text-logger.ts');
    const program = `import { textLogger } from ${JSON.stringify(module)}; textLogger().info({ a: 1 }, 'Hello');`;
    const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
      encoding: 'utf8',
    });
    assert.deepEqual([status, stdout], [0, '']);
    assert.match(stderr, /^\S+ info {2}Hello a=1\n$/);
  });
});
