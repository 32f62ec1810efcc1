import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { leaveTerminationMessage } from '../../../src/run/exit.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';

describe('the message that a Pod shows', () => {
  test('replaces what is in the file, without a line end', async (context) => {
    const file = path.join(await folder(context), 'termination-log');
    await writeFile(file, 'a longer message of an earlier end of the same container');
    leaveTerminationMessage('Lost connection', { logger: recordedLogger([]), path: file });
    assert.equal(await readFile(file, 'utf8'), 'Lost connection');
  });

  test('is not written where there is no such file', async (context) => {
    const lines: LogLine[] = [];
    const file = path.join(await folder(context), 'termination-log');
    leaveTerminationMessage('Lost connection', { logger: recordedLogger(lines), path: file });
    assert.equal(existsSync(file), false);
    assert.deepEqual(lines, []);
  });

  test('that cannot be written is logged and stops nothing', async (context) => {
    const lines: LogLine[] = [];
    leaveTerminationMessage('Lost connection', { logger: recordedLogger(lines), path: await folder(context) });
    assert.deepEqual(
      lines.map(({ level, message }) => ({ level, message })),
      [{ level: 'error', message: 'The termination message could not be written' }],
    );
  });
});

async function folder(context: { after(run: () => Promise<void>): void }): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'termination-'));
  context.after(() => rm(made, { recursive: true, force: true }));
  return made;
}
