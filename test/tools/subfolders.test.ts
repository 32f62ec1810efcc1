/** docs/architecture.md, "Subfolders", against the folders and their imports. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';

const root = path.join(import.meta.dirname, '../..');
const page = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8');
const section = page.split(/^###? /m).find((text) => text.startsWith('Subfolders\n')) ?? '';
const subfolders = Array.from(
  section.matchAll(/^\| `([^`]+)` *\|.*\|([^|]*)\|$/gm),
  ([, subfolder = '', hidden = '']) => ({
    subfolder,
    hidden:
      hidden.trim() === 'all others'
        ? foldersOf(path.dirname(subfolder)).filter((name) => name !== path.basename(subfolder))
        : Array.from(hidden.matchAll(/`([^`]+)`/g), ([, name = '']) => name),
  }),
);

describe('the subfolders in docs/architecture.md', () => {
  test('are those of src/provision, src/kube and src/csi', () => {
    const folders = ['src/provision', 'src/kube', 'src/csi'].flatMap((parent) =>
      foldersOf(parent).map((name) => `${parent}/${name}`),
    );
    assert.deepEqual(subfolders.map(({ subfolder }) => subfolder).toSorted(), folders.toSorted());
  });

  for (const { subfolder, hidden } of subfolders.filter((each) => each.hidden.length > 0)) {
    test(`${subfolder} does not import from ${hidden.join(', ')}`, () => {
      const parent = path.dirname(subfolder);
      assert.deepEqual(
        hidden.filter((name) => !foldersOf(parent).includes(name)),
        [],
        'no such subfolder',
      );
      const known = new Set(importsOf(subfolder).map((file) => path.relative(parent, file).split(path.sep)[0] ?? ''));
      assert.deepEqual(
        hidden.filter((name) => known.has(name)),
        [],
      );
    });
  }
});

function foldersOf(folder: string): string[] {
  return globSync('*/', { cwd: path.join(root, folder) }).map((name) => path.basename(name));
}

/** Files that those of a folder import, also by `import()` or for a type alone. */
function importsOf(folder: string): string[] {
  return globSync(`${folder}/**/*.ts`, { cwd: root }).flatMap((file) =>
    Array.from(
      readFileSync(path.join(root, file), 'utf8').matchAll(/(?:from |import\()'(\.[^']+)'/g),
      ([, target = '']) => path.join(path.dirname(file), target),
    ),
  );
}
