import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { OpenedDirectory } from '../../../src/base/opened-directory.ts';
import { removeTree } from '../../../src/base/remove-tree.ts';

/** Whether this machine has files that cannot be removed even by root. */
const isImmutable = ((): boolean => {
  const folder = mkdtempSync(path.join(tmpdir(), 'immutable-'));
  try {
    execFileSync('chattr', ['+i', folder], { stdio: 'ignore' });
    execFileSync('chattr', ['-i', folder], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true });
  }
})();

function isMade(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

describe('removeTree', () => {
  let folder: string;
  let share: string;
  let bait: string;
  let root: OpenedDirectory;

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'remove-tree-'));
    share = path.join(folder, 'share');
    bait = path.join(folder, 'bait');
    mkdirSync(share);
    mkdirSync(bait);
    writeFileSync(path.join(bait, 'kept'), 'outside');
    root = await OpenedDirectory.open(share);
  });
  afterEach(async () => {
    await root[Symbol.asyncDispose]();
    assert.equal(await readFile(path.join(bait, 'kept'), 'utf8'), 'outside');
    if (isImmutable) execFileSync('chattr', ['-R', '-f', '-i', share], { stdio: 'ignore' });
    await rm(folder, { recursive: true });
  });

  test('removes files, directories and links with all that is in them, and is content with nothing', async () => {
    mkdirSync(path.join(share, 'v/a/b'), { recursive: true });
    writeFileSync(path.join(share, 'v/a/b/file'), 'x');
    symlinkSync(bait, path.join(share, 'v/a/link'));
    symlinkSync('nowhere', path.join(share, 'v/dangling'));
    await removeTree(root, 'v');
    await removeTree(root, 'v');
    assert.deepEqual(readdirSync(share), []);
  });

  test('removes a link in the place of the directory, and not what it points to', async () => {
    symlinkSync(bait, path.join(share, 'v'));
    await removeTree(root, 'v');
    assert.deepEqual(readdirSync(share), []);
  });

  test('removes names that are no UTF-8, and names with line breaks', async () => {
    mkdirSync(path.join(share, 'v'));
    writeFileSync(Buffer.concat([Buffer.from(`${share}/v/`), Buffer.from([0xff, 0xfe, 0x41])]), 'x');
    writeFileSync(path.join(share, 'v/a\nb'), 'x');
    await removeTree(root, 'v');
    assert.deepEqual(readdirSync(share), []);
  });

  test('removes more levels than a process may have files open, and more entries than one listing has', async () => {
    const levels = 3000;
    mkdirSync(path.join(share, 'v'));
    let name = path.join(share, 'chain');
    mkdirSync(name);
    for (let level = 0; level < levels; level++) {
      const outer = path.join(share, `chain-${level}`);
      mkdirSync(outer);
      renameSync(name, path.join(outer, 'd'));
      name = outer;
    }
    renameSync(name, path.join(share, 'v/deep'));
    for (let file = 0; file < 2000; file++) writeFileSync(path.join(share, 'v', `f-${file}`), '');
    await removeTree(root, 'v');
    assert.deepEqual(readdirSync(share), []);
  });

  test('follows no link that takes the place of a directory meanwhile', async () => {
    mkdirSync(path.join(share, 'v'));
    let swaps = 0;
    const aborted = new AbortController();
    const swapping = (async () => {
      while (!aborted.signal.aborted) {
        for (const name of ['a', 'b', 'c']) {
          const place = path.join(share, 'v', name);
          try {
            mkdirSync(place);
            writeFileSync(path.join(place, 'kept'), 'x');
            renameSync(place, `${place}-away`);
            symlinkSync(bait, place);
            swaps += 1;
            rmSync(`${place}-away`, { recursive: true, force: true });
          } catch {
            rmSync(place, { recursive: true, force: true }); // the removal was here, too
          }
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    for (let round = 0; round < 30; round++) await removeTree(root, 'v').catch(() => undefined);
    aborted.abort();
    await swapping;
    assert.ok(swaps > 10, `${swaps} swaps`);
    await removeTree(root, 'v');
    assert.equal(existsSync(path.join(share, 'v')), false);
  });

  for (const [what, swap] of [
    ['a file', (place: string) => writeFileSync(place, '')],
    ['a link', (place: string) => symlinkSync(bait, place)],
  ] as const) {
    test(`removes ${what} that takes the place of a directory between its emptying and its removal`, async () => {
      for (const place of ['v', 'v/d']) {
        mkdirSync(path.join(share, place), { recursive: true });
        writeFileSync(path.join(share, place, 'last'), '');
        const { signal } = new AbortController();
        // asked before each entry: a tenant acts at that very moment
        signal.throwIfAborted = () => {
          if (!existsSync(path.join(share, place, 'last'))) return;
          if (readdirSync(path.join(share, place)).join() !== 'last') return;
          renameSync(path.join(share, place), path.join(folder, 'aside'));
          swap(path.join(share, place));
        };
        await removeTree(root, 'v', { signal });
        assert.deepEqual(readdirSync(share), []);
        rmSync(path.join(folder, 'aside'), { recursive: true, force: true });
      }
    });
  }

  describe('with entries that cannot be removed', { skip: !isImmutable && 'needs root and immutable files' }, () => {
    const immutable = (...names: string[]): string => {
      const place = path.join(share, ...names);
      execFileSync('chattr', ['+i', place]);
      return place;
    };

    test('removes everything else, and reports the first one and how many are left', async () => {
      for (let folder = 0; folder < 3; folder++) {
        mkdirSync(path.join(share, `v/${folder}/deep`), { recursive: true });
        for (let file = 0; file < 40; file++) writeFileSync(path.join(share, `v/${folder}/deep/${file}`), '');
      }
      const place = immutable('v/1/deep/7');
      await assert.rejects(removeTree(root, 'v'), {
        code: 'EPERM',
        message: `EPERM: operation not permitted, unlink '${place}'; 4 entries are left`,
      });
      const left = readdirSync(share, { recursive: true }).map(String).sort();
      assert.deepEqual(left, ['v', 'v/1', 'v/1/deep', 'v/1/deep/7']);
      execFileSync('chattr', ['-i', place]);
      await removeTree(root, 'v');
      assert.deepEqual(readdirSync(share), []);
    });

    test('goes on beside a directory of which nothing can be removed, and beside one that lies too deep', async () => {
      const deep = `v/${Array.from({ length: 40 }, (_each, level) => `d${level}`).join('/')}`;
      for (const folder of ['v/frozen', 'v/free', deep]) mkdirSync(path.join(share, folder), { recursive: true });
      for (const folder of ['v/frozen', 'v/free', deep]) writeFileSync(path.join(share, folder, 'file'), '');
      const frozen = immutable('v/frozen');
      await assert.rejects(removeTree(root, 'v'), {
        code: 'EPERM',
        message: `EPERM: operation not permitted, unlink '${frozen}/file'; 3 entries are left`,
      });
      assert.deepEqual(readdirSync(share, { recursive: true }).map(String).sort(), ['v', 'v/frozen', 'v/frozen/file']);
    });

    test('ends early where nothing at all can be removed', async () => {
      mkdirSync(path.join(share, 'v'));
      for (let file = 0; file < 1200; file++) writeFileSync(path.join(share, `v/${file}`), '');
      immutable('v');
      await assert.rejects(removeTree(root, 'v'), /^Error: EPERM.*unlink '.*v\/\d+'$/);
    });
  });

  // the files of a control group refuse to be removed, and go with their directory, as a `.snapshot` of a file server does
  const groups = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'].find((place) => existsSync(`${place}/cgroup.procs`));
  const group = groups && path.join(groups, `remove-tree-${process.pid}`);
  const canGroup = group !== undefined && isMade(group);

  test(
    'removes a directory with entries that only go with it',
    { skip: !canGroup && 'needs control groups' },
    async () => {
      assert.ok(groups !== undefined && group !== undefined);
      mkdirSync(path.join(group, 'a/b'), { recursive: true });
      assert.ok(readdirSync(path.join(group, 'a/b')).length > 0);
      await using parent = await OpenedDirectory.open(groups);
      await removeTree(parent, path.basename(group));
      assert.equal(existsSync(group), false);
    },
  );

  test('ends when it is told to', async () => {
    mkdirSync(path.join(share, 'v/a'), { recursive: true });
    const reason = new Error('enough');
    await assert.rejects(removeTree(root, 'v', { signal: AbortSignal.abort(reason) }), reason);
  });
});
