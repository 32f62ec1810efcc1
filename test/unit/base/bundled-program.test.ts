import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import { bundled } from '../../support/program-file.ts';
import { BundledProgram, compiledCodeFile } from '../../../src/base/bundled-program.ts';

const source = `
function deep() { throw new Error('from the program'); }
exports.answer = () => 6 * 7;
exports.fail = () => deep();
exports.builtin = () => require('node:os').EOL;
exports.place = [__filename, __dirname];
`;
const moduleFile = path.join(import.meta.dirname, '../../../src/base/bundled-program.ts');

interface Exports {
  answer: () => number;
  fail: () => never;
  builtin: () => string;
  place: string[];
}

const exportsOf = (program: BundledProgram): Exports => program.run() as Exports;

describe('BundledProgram', () => {
  let folder: string;
  let file: string;
  let code: Buffer;

  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'bundled-'));
    await chmod(folder, 0o755); // another user passes through
    file = path.join(folder, 'program.cjs');
    await writeFile(file, source);
    const program = new BundledProgram(file);
    exportsOf(program).answer();
    code = program.compiledCode();
  });
  beforeEach(() => rm(compiledCodeFile(file), { recursive: true, force: true }));
  after(() => rm(folder, { recursive: true }));

  const written = async (content: Buffer): Promise<BundledProgram> => {
    await writeFile(compiledCodeFile(file), content);
    return new BundledProgram(file);
  };

  const compiled = (program: BundledProgram): void => {
    assert.equal(program.isCached, false);
    assert.equal(exportsOf(program).answer(), 42);
  };

  test('runs a program that has no compiled code', () => compiled(new BundledProgram(file)));

  test('runs a program from its compiled code', async () => {
    const program = await written(code);
    assert.equal(program.isCached, true);
    const { answer, builtin, place } = exportsOf(program);
    assert.equal(answer(), 42);
    assert.equal(builtin(), '\n');
    assert.deepEqual(place, [file, folder]);
  });

  test('names file and line in the traces of errors, also where the code was compiled in another folder', async () => {
    const moved = path.join(folder, 'moved');
    await mkdir(moved);
    const other = path.join(moved, 'program.cjs');
    await writeFile(other, source);
    await writeFile(compiledCodeFile(other), code);
    const program = new BundledProgram(other);
    assert.equal(program.isCached, true);
    assert.throws(exportsOf(program).fail, (error: Error) => {
      assert.ok(error.stack?.includes(`${other}:2:25`), error.stack);
      return true;
    });
  });

  for (const [title, length] of [
    ['nothing', 0],
    ['half a header', 8],
    ['a header', 16],
    ['half of it', undefined],
  ] as const) {
    test(`compiles the program where of its code there is ${title}`, async () => {
      compiled(await written(code.subarray(0, length ?? code.length / 2)));
    });
  }

  test('compiles the program where any byte of its code is another', async () => {
    for (let at = 0; at < code.length; at += 13) {
      const damaged = Buffer.from(code);
      damaged[at] = (damaged[at] ?? 0) ^ 0xff;
      compiled(await written(damaged));
    }
  });

  test('compiles the program where the code is that of another one as long', async () => {
    const other = path.join(folder, 'other.cjs');
    await writeFile(other, source.replace('6 * 7', '6 * 8'));
    const program = new BundledProgram(other);
    assert.equal(exportsOf(program).answer(), 48);
    compiled(await written(program.compiledCode()));
  });

  test('compiles the program where the code is whole and of another V8', async () => {
    const foreign = Buffer.from(code);
    foreign[20] = (foreign[20] ?? 0) ^ 1; // in the hash of V8's version
    foreign.writeUInt32LE(crc32(foreign.subarray(16)), 12);
    await writeFile(compiledCodeFile(file), foreign);
    assert.equal(await isCachedIn([]), false);
  });

  test('compiles the program where V8 has other flags', async () => {
    await writeFile(compiledCodeFile(file), code);
    assert.equal(await isCachedIn(['--heap-growing-percent=10']), false);
    assert.equal(await isCachedIn([]), true);
  });

  test('reads the code under the flags of the image, and under those of the benchmarks', async () => {
    await writeFile(compiledCodeFile(file), code);
    const dockerfile = await readFile(path.join(import.meta.dirname, '../../../Dockerfile'), 'utf8');
    const entryPoint = JSON.parse(/^ENTRYPOINT (.*csi-provisioner\.mjs.*)$/m.exec(dockerfile)?.[1] ?? '[]') as string[];
    for (const flags of [entryPoint.slice(1, -1), bundled.split(' ').slice(1, -1)]) {
      assert.ok(flags.length > 0);
      assert.equal(await isCachedIn(flags), true, flags.join(' '));
    }
  });

  test('compiles the program where a folder has the name of the code', async () => {
    await mkdir(compiledCodeFile(file));
    compiled(new BundledProgram(file));
  });

  test('throws where the program itself is missing', () => {
    assert.throws(() => new BundledProgram(path.join(folder, 'missing.cjs')), /ENOENT/);
  });

  describe('as another user', { skip: process.getuid?.() !== 0 && 'only root may become another user' }, () => {
    const other = { uid: 65_532, gid: 65_532 };

    test('reads the code in a folder that the user may not write', async () => {
      await writeFile(compiledCodeFile(file), code, { mode: 0o644 });
      assert.equal(await isCachedIn([], other), true);
      assert.deepEqual(await readFile(compiledCodeFile(file)), code);
    });

    test('compiles the program where the user may not read the code', async () => {
      await writeFile(compiledCodeFile(file), code, { mode: 0o600 });
      assert.equal(await isCachedIn([], other), false);
    });
  });

  /**
   * Whether a process of its own took the compiled code; the program ran in it. In this one V8 also remembers by itself
   * what it compiled.
   */
  async function isCachedIn(flags: string[], user?: { uid: number; gid: number }): Promise<boolean> {
    const text = `import { BundledProgram } from './bundled-program.ts';
      const program = new BundledProgram(${JSON.stringify(file)});
      console.log(program.isCached, program.run().answer());`;
    const module = path.join(folder, 'bundled-program.ts');
    await writeFile(module, await readFile(moduleFile), { mode: 0o644 });
    const args = [...flags, '--input-type=module', '--eval', text];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder, ...user });
    const [isCached, answer] = stdout.trim().split(' ');
    assert.equal(answer, '42');
    return isCached === 'true';
  }
});
