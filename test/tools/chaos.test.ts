import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

const program = join(import.meta.dirname, '../../scripts/chaos.ts');

test('a chaos run without the intent journal finds volumes that have leaked, and fails', async () => {
  const args = [
    '--journal=off',
    '--claims=60',
    '--kills=4',
    '--seed=proof',
    '--no-election',
    '--only=deletions,driver',
  ];
  const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) => {
    execFile(process.execPath, [program, ...args], (error, stdout, stderr) => {
      resolve({ code: error?.code ?? 0, output: stdout + stderr });
    });
  });
  assert.match(output, /^leaked +[1-9]/m);
  assert.match(output, /^lost +0$/m);
  const [, logs = ''] = /^logs: (.+)$/m.exec(output) ?? [];
  const calls = await readFile(join(logs, 'driver-calls.jsonl'), 'utf8');
  assert.match(calls, /"method":"CreateVolume"/, 'the logs stay');
  await rm(logs, { recursive: true });
  assert.equal(code, 1, output);
});
