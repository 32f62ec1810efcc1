import assert from 'node:assert/strict';
import { existsSync, mkdirSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { makeDirectory } from '../../../src/base/make-directory.ts';
import { NotDirectoryError, OpenedDirectory } from '../../../src/base/opened-directory.ts';

describe('an opened directory', () => {
  let folder: string;
  let root: OpenedDirectory;

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'opened-'));
    root = await OpenedDirectory.open(folder);
  });
  afterEach(async () => {
    await root[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  test('stays the same one when its path leads elsewhere', async () => {
    mkdirSync(path.join(folder, 'a'));
    mkdirSync(path.join(folder, 'elsewhere'));
    await using a = await root.enter('a');
    renameSync(path.join(folder, 'a'), path.join(folder, 'moved'));
    symlinkSync('elsewhere', path.join(folder, 'a'));
    await using inner = await a.walk(['x', 'y'], { make: true });
    assert.equal(inner.place, path.join(folder, 'a/x/y'));
    assert.ok(existsSync(path.join(folder, 'moved/x/y')));
    assert.equal(existsSync(path.join(folder, 'elsewhere/x')), false);
  });

  test('is not left by a link, whatever it points to, and says where one is', async () => {
    mkdirSync(path.join(folder, 'real'));
    symlinkSync('real', path.join(folder, 'link'));
    writeFileSync(path.join(folder, 'file'), '');
    await assert.rejects(root.walk(['link', 'x'], { make: true }), {
      name: NotDirectoryError.name,
      message: `${path.join(folder, 'link')} is a symbolic link`,
    });
    await assert.rejects(root.walk(['file'], { make: true }), /file is not a directory$/);
    assert.equal(existsSync(path.join(folder, 'real/x')), false);
  });

  test('takes names of one entry alone', () => {
    for (const name of ['', '.', '..', 'a/b', '/', 'a\0']) {
      assert.throws(() => root.entry(name), TypeError, JSON.stringify(name));
      assert.throws(() => root.entry(Buffer.from(name)), TypeError, JSON.stringify(name));
    }
    for (const name of ['...', 'a\nb', '.hidden', ' ']) assert.ok(root.entry(name));
  });

  test('missing directories are reported as the file system reports them', async () => {
    await assert.rejects(root.enter('nothing'), { code: 'ENOENT' });
    assert.equal(await root.has('nothing'), false);
    symlinkSync('nowhere', path.join(folder, 'dangling'));
    assert.equal(await root.has('dangling'), true);
  });
});

describe('makeDirectory', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'make-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  for (const mode of [0o777, 0o2777, 0o2071, 0o750]) {
    const keepsOwnerOut = (mode & 0o400) === 0;
    const skip = keepsOwnerOut && process.getuid?.() !== 0 && 'needs root';
    test(`gives exactly ${mode.toString(8)}, whatever the umask`, { skip }, async () => {
      const before = process.umask(0o027);
      try {
        assert.equal(await makeDirectory(path.join(folder, 'd'), { mode }), true);
        assert.equal(statSync(path.join(folder, 'd')).mode & 0o7777, mode);
        assert.equal(await makeDirectory(path.join(folder, 'd'), { mode: 0o700 }), false);
        assert.equal(statSync(path.join(folder, 'd')).mode & 0o7777, 0o700);
      } finally {
        process.umask(before);
      }
    });
  }

  test('never follows a link, and changes nothing behind it', async () => {
    mkdirSync(path.join(folder, 'real'), { mode: 0o700 });
    symlinkSync('real', path.join(folder, 'link'));
    await assert.rejects(makeDirectory(path.join(folder, 'link'), { mode: 0o777 }), { code: /ENOTDIR|ELOOP/ });
    assert.equal(statSync(path.join(folder, 'real')).mode & 0o777, 0o700);
  });

  test('sets the group where that is permitted', { skip: process.getuid?.() !== 0 && 'needs root' }, async () => {
    await makeDirectory(path.join(folder, 'd'), { mode: 0o2071, gid: 1001 });
    const found = statSync(path.join(folder, 'd'));
    assert.deepEqual([found.gid, found.mode & 0o7777], [1001, 0o2071]);
  });

  test('leaves nothing behind that it could not finish', async () => {
    const path_ = path.join(folder, 'd');
    await assert.rejects(makeDirectory(path_, { mode: 0o777, gid: -5 }));
    assert.equal(existsSync(path_), false);
  });
});
