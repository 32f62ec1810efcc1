import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { panicExit, reportExit, usageExit } from '../../../src/cli/command-line-exit.ts';
import { createLogger } from '../../../src/cli/logging.ts';
import { ExitError, failureExit, fatalExit } from '../../../src/run/exit.ts';

function report(error: ExitError): { code: number; text: string } {
  let text = '';
  const write = (part: string): void => void (text += part);
  const logger = createLogger({ format: 'text', verbosity: 0, sink: { write } });
  return { code: reportExit(error, { logger, writeError: write }), text };
}

describe('the end of the process', () => {
  test('a bad command line: one line whatever it holds, 2', () => {
    assert.deepEqual(report(usageExit('unknown flag: --x')), { code: 2, text: 'unknown flag: --x\n' });
    assert.deepEqual(report(usageExit('unknown flag: --a\nb "c"')), { code: 2, text: 'unknown flag: --a\\nb "c"\n' });
  });

  test('what panics in the original: its text, 2', () => {
    assert.deepEqual(report(panicExit('http: invalid pattern')), { code: 2, text: 'panic: http: invalid pattern\n' });
  });

  test('fatal: one F line, 255', () => {
    const { code, text } = report(fatalExit('Failed to create config: stat /x: no such file or directory'));
    assert.equal(code, 255);
    assert.match(text, /^F\d{4} .*\] Failed to create config: stat \/x: no such file or directory\n$/);
  });

  test('failure: one E line, 1', () => {
    const { code, text } = report(failureExit('Lost connection', { address: 'unix:///s' }));
    assert.equal(code, 1);
    assert.match(text, /^E\d{4} .*\] "Lost connection" address="unix:\/\/\/s"\n$/);
  });

  test('no line, no output', () => {
    assert.deepEqual(report(new ExitError('', { code: 0, severity: 'plain' })), { code: 0, text: '' });
  });

  test('the cause stays with the error', () => {
    const cause = new Error('why');
    assert.equal(fatalExit('x', cause).cause, cause);
  });
});
