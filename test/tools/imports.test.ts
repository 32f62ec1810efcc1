import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import ts from 'typescript';

const root = path.join(import.meta.dirname, '../..');
const generated = 'src/csi/generated/';

/** Each file with the files it imports, for their types alone, too. */
type Imports = ReadonlyMap<string, readonly string[]>;

/** TypeScript files of a folder, with paths from the root. */
async function sourcesIn(folder: string): Promise<string[]> {
  const names = await readdir(path.join(root, folder), { recursive: true });
  const files = names.map((name) => `${folder}/${name}`);
  return files.filter((file) => file.endsWith('.ts') && !file.startsWith(generated));
}

function importsOf(file: string, text: string): string[] {
  const { importedFiles } = ts.preProcessFile(text);
  const relative = importedFiles.map(({ fileName }) => fileName).filter((name) => name.startsWith('.'));
  return relative.map((name) => path.posix.join(path.posix.dirname(file), name));
}

/** One circle of imports, as the files on the way round it, the first one repeated at the end. */
function circleIn(imports: Imports): string[] | undefined {
  const finished = new Set<string>();
  const visit = (file: string, way: readonly string[]): string[] | undefined => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (finished.has(file)) return undefined;
    for (const imported of imports.get(file) ?? []) {
      const circle = visit(imported, [...way, file]);
      if (circle !== undefined) return circle;
    }
    finished.add(file);
    return undefined;
  };
  for (const file of imports.keys()) {
    const circle = visit(file, []);
    if (circle !== undefined) return circle;
  }
  return undefined;
}

/** Names that files of more than one folder have. */
function repeatedNames(files: readonly string[]): string[][] {
  const byName = Map.groupBy(files, (file) => path.posix.basename(file));
  return [...byName.values()].filter(({ length }) => length > 1);
}

/** The code that ships; everything may import it. */
const shipped = ['src', 'sandbox', 'provisioners'];

/** What a folder may import besides the code that ships, `test` standing for all that has no row of its own. */
const lower: Readonly<Record<string, readonly string[]>> = {
  'test/support': ['test/support'],
  scripts: ['scripts', 'test/support'],
  bench: ['bench', 'scripts', 'test/support'],
  'test/tools': ['test', 'scripts', 'bench'],
  test: ['test'],
};

/** Imports that lead upwards, as `a.ts imports b.ts`. */
function upward(imports: Imports): string[] {
  const isIn = (file: string, folder: string): boolean => file.startsWith(`${folder}/`);
  return [...imports].flatMap(([file, imported]) => {
    const [, allowed = []] = Object.entries(lower).find(([folder]) => isIn(file, folder)) ?? [];
    return imported
      .filter((name) => name.endsWith('.ts') && ![...shipped, ...allowed].some((folder) => isIn(name, folder)))
      .map((name) => `${file} imports ${name}`);
  });
}

describe('imports', () => {
  test('of tests, scripts and benchmarks lead downwards: tests, benchmarks, scripts, test/support, the code that ships', async () => {
    const files = (await Promise.all(['test', 'scripts', 'bench'].map(sourcesIn))).flat();
    const texts = await Promise.all(files.map((file) => readFile(path.join(root, file), 'utf8')));
    const imports = new Map(files.map((file, index) => [file, importsOf(file, texts[index]!)]));
    assert.deepEqual(upward(imports), []);
  });

  test('that lead upwards are found', () => {
    const imports = new Map([
      ['test/support/a.ts', ['src/a.ts', 'test/support/b.ts', 'scripts/a.ts', 'test/e2e/a.ts']],
      ['scripts/a.ts', ['test/support/a.ts', 'bench/a.ts', 'test/tools/a.test.ts']],
      ['bench/a.ts', ['scripts/a.ts', 'test/e2e/a.ts']],
      ['test/tools/a.test.ts', ['scripts/a.ts', 'bench/a.ts', 'test/integration/a.ts']],
      ['test/e2e/a.ts', ['test/support/a.ts', 'bench/a.ts']],
    ]);
    assert.deepEqual(upward(imports), [
      'test/support/a.ts imports scripts/a.ts',
      'test/support/a.ts imports test/e2e/a.ts',
      'scripts/a.ts imports bench/a.ts',
      'scripts/a.ts imports test/tools/a.test.ts',
      'bench/a.ts imports test/e2e/a.ts',
      'test/e2e/a.ts imports bench/a.ts',
    ]);
  });

  for (const folder of ['src', 'sandbox', 'provisioners', 'scripts', 'bench', 'test']) {
    test(`form no circle in ${folder}`, async () => {
      const imports = new Map<string, string[]>();
      for (const file of await sourcesIn(folder)) {
        imports.set(file, importsOf(file, await readFile(path.join(root, file), 'utf8')));
      }
      assert.ok(imports.size > 0);
      for (const [file, imported] of imports) {
        for (const name of imported.filter((name) => name.startsWith(`${folder}/`) && !name.startsWith(generated))) {
          assert.ok(imports.has(name), `${file} imports ${name}, which was not read`);
        }
      }
      assert.equal(circleIn(imports)?.join(' → '), undefined);
    });
  }

  test('of types, of re-exports and of modules loaded later count, too', () => {
    const text = `
      import type { A } from './a.ts';
      import { type B, b } from '../b.ts';
      export * from './c/c.ts';
      export type { D } from './d.ts';
      const e = await import('./e.ts');
      import 'node:fs';
      // import './comment.ts';`;
    assert.deepEqual(importsOf('src/x/y.ts', text).sort(), [
      'src/b.ts',
      'src/x/a.ts',
      'src/x/c/c.ts',
      'src/x/d.ts',
      'src/x/e.ts',
    ]);
  });

  test('in a circle are found, with the way round it', () => {
    const straight: [string, string[]][] = [
      ['a', ['b', 'c']],
      ['b', ['d']],
      ['c', ['d', 'e']],
      ['d', ['e']],
      ['e', ['outside']],
    ];
    assert.equal(circleIn(new Map(straight)), undefined);
    assert.deepEqual(circleIn(new Map([...straight, ['e', ['c']]])), ['d', 'e', 'c', 'd']);
    assert.deepEqual(circleIn(new Map([['a', ['a']]])), ['a', 'a']);
  });
});

describe('file names', () => {
  test('of src say one thing each: no two folders have a file of the same name', async () => {
    const files = await sourcesIn('src');
    assert.ok(files.length > 100);
    const loaders = ['src/main.ts']; // checks the version of Node.js and loads its namesake
    assert.deepEqual(repeatedNames(files.filter((file) => !loaders.includes(file))), []);
  });

  test('that stand twice are found', () => {
    assert.deepEqual(repeatedNames(['a/x.ts', 'a/y.ts', 'b/x.ts']), [['a/x.ts', 'b/x.ts']]);
  });
});
