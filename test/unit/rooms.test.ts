/** docs/architecture.md, "Rooms", against the folders and their imports. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';

const root = path.join(import.meta.dirname, '../..');
const page = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8');
const section = page.split(/^###? /m).find((text) => text.startsWith('Rooms\n')) ?? '';
const rooms = Array.from(section.matchAll(/^\| `([^`]+)` *\|.*\|([^|]*)\|$/gm), ([, room = '', hidden = '']) => ({
  room,
  hidden:
    hidden.trim() === 'all others'
      ? foldersOf(path.dirname(room)).filter((name) => name !== path.basename(room))
      : Array.from(hidden.matchAll(/`([^`]+)`/g), ([, name = '']) => name),
}));

describe('the rooms in docs/architecture.md', () => {
  test('are the folders of src/provision, src/kube and src/csi', () => {
    const folders = ['src/provision', 'src/kube', 'src/csi'].flatMap((floor) =>
      foldersOf(floor).map((name) => `${floor}/${name}`),
    );
    assert.deepEqual(rooms.map(({ room }) => room).toSorted(), folders.toSorted());
  });

  for (const { room, hidden } of rooms.filter((each) => each.hidden.length > 0)) {
    test(`${room} does not import from ${hidden.join(', ')}`, () => {
      const floor = path.dirname(room);
      assert.deepEqual(
        hidden.filter((name) => !foldersOf(floor).includes(name)),
        [],
        'no such room',
      );
      const known = new Set(importsOf(room).map((file) => path.relative(floor, file).split(path.sep)[0] ?? ''));
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
