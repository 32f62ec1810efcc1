import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

const module = JSON.stringify(new URL('../../../src/base/standard-error.ts', import.meta.url).href);

test('a full pipe that does not block is waited for: nothing is lost', async () => {
  const characters = 1_000_000;
  const script = `
    import { writeStandardError } from ${module};
    process.stderr; // from here on the pipe does not block
    console.log('writing');
    writeStandardError('\\u00e4'.repeat(${characters}) + 'end');`;
  const writer = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exit = once(writer, 'exit');
  await once(writer.stdout, 'data'); // the pipe fills before anybody reads
  assert.equal((await text(writer.stderr)).length, characters + 'end'.length);
  assert.deepEqual(await exit, [0, null]);
});
