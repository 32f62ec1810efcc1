import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { copyContent, makeContent, resizeBlockContent } from '../../../sandbox/hostpath/volume-content.ts';

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'content-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

describe('volume content', () => {
  test('a directory is open to everybody, whatever the umask', async (t) => {
    const content = path.join(temporaryFolder(t), 'data');
    await makeContent(content, 'mount', 5n);
    assert.equal(statSync(content).mode & 0o777, 0o777);
  });

  test('a copy keeps modes and links', async (t) => {
    const folder = temporaryFolder(t);
    const [from, to] = [path.join(folder, 'from'), path.join(folder, 'to')];
    await makeContent(from, 'mount', 5n);
    writeFileSync(path.join(from, 'file'), 'text', { mode: 0o600 });
    symlinkSync('file', path.join(from, 'link'));
    await copyContent(from, to);
    assert.equal(readFileSync(path.join(to, 'file'), 'utf8'), 'text');
    assert.equal(statSync(path.join(to, 'file')).mode & 0o777, 0o600);
    assert.equal(readlinkSync(path.join(to, 'link')), 'file');
  });

  test('a block file is sparse, grows and never shrinks', async (t) => {
    const content = path.join(temporaryFolder(t), 'data');
    await makeContent(content, 'block', 4096n);
    await resizeBlockContent(content, 1n << 30n);
    assert.deepEqual([statSync(content).size, statSync(content).blocks], [2 ** 30, 0]);
    await resizeBlockContent(content, 1n);
    assert.equal(statSync(content).size, 2 ** 30);
  });

  test('more than a file can hold is OUT_OF_RANGE', async (t) => {
    const content = path.join(temporaryFolder(t), 'data');
    await assert.rejects(makeContent(content, 'block', 1n << 60n), { codeName: 'OUT_OF_RANGE' });
  });
});
