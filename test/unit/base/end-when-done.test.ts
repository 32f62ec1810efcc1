import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

const moduleUrl = pathToFileURL(path.join(import.meta.dirname, '../../../src/base/end-when-done.ts')).href;

for (const [title, statement] of [
  ['a process that has nothing left to do', 'setTimeout(() => console.log("worked"), 10)'],
  ['a process whose work sets an exit code', 'setTimeout(() => { console.log("worked"); process.exitCode = 3; }, 10)'],
] as const) {
  test(`${title} is ended after its work, before Node.js frees what it holds`, () => {
    const sayHow = 'process.on("exit", () => console.log(/beforeExit|end-when-done/.test(new Error("").stack)));';
    const program = `await import(${JSON.stringify(moduleUrl)}); ${sayHow} ${statement}`;
    const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
      encoding: 'utf8',
    });
    assert.deepEqual([stdout, status], ['worked\ntrue\n', statement.includes('exitCode') ? 3 : 0]);
  });
}
