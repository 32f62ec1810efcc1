/** The compiled code of the bundle, as the image has it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { BundledProgram, compiledCodeFile } from '../../src/base/bundled-program.ts';

const run = promisify(execFile);
const script = (name: string): string => path.join(import.meta.dirname, '../../scripts', name);

test('the compiled code has the same bytes in whatever folder it is made, and Node.js takes it', async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'code-cache-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const [one, two] = [path.join(folder, 'one'), path.join(folder, 'another/and-longer')];
  await run(process.execPath, [script('build.ts'), 'csi-provisioner', '--out', one]);
  await cp(one, two, { recursive: true });
  const codes = [];
  for (const made of [one, two]) {
    const bundle = path.join(made, 'csi-provisioner.bundle.cjs');
    await run(process.execPath, [script('code-cache.ts'), bundle]);
    assert.equal(new BundledProgram(bundle).isCached, true);
    codes.push(await readFile(compiledCodeFile(bundle)));
  }
  assert.ok((codes[0]?.length ?? 0) > 1_000_000, 'the listed functions are in it, not only the outermost one');
  assert.ok(codes[0]?.equals(codes[1] ?? Buffer.alloc(0)));
});
