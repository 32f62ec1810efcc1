import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { listPage } from '../../../sandbox/hostpath/list-page.ts';
import { RecordFolder, type StoredRecord } from '../../../sandbox/hostpath/hostpath-state.ts';

interface Thing extends StoredRecord {
  colour: string;
}

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'records-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

const write = (contentPath: string): void => writeFileSync(contentPath, 'content');

describe('RecordFolder', () => {
  test('what was added and changed is there after a restart, in the same order', async (t) => {
    const folder = temporaryFolder(t);
    const before = new RecordFolder<Thing>(folder);
    const z = await before.add({ id: 'z', name: 'first', colour: 'red' }, write);
    await before.add({ id: 'a', name: 'second', colour: 'red' }, write);
    before.update({ ...z, colour: 'blue' });
    const after = new RecordFolder<Thing>(folder);
    assert.deepEqual(after.all(), [
      { id: 'z', name: 'first', colour: 'blue', serial: 1 },
      { id: 'a', name: 'second', colour: 'red', serial: 2 },
    ]);
    assert.equal(after.getByName('second')?.id, 'a');
    assert.equal(readFileSync(after.contentPath('z'), 'utf8'), 'content');
    assert.equal((await after.add({ id: 'm', name: 'third', colour: 'red' }, write)).serial, 3);
  });

  test('nothing is left when the content cannot be made', async (t) => {
    const folder = temporaryFolder(t);
    const records = new RecordFolder<Thing>(folder);
    const failing = records.add({ id: 'x', name: 'x', colour: 'red' }, () => {
      throw new Error('disk full');
    });
    await assert.rejects(failing, /disk full/);
    assert.deepEqual([records.all(), records.getByName('x'), readdirSync(folder)], [[], undefined, []]);
  });

  test('a record shows only once its content is made', async (t) => {
    const records = new RecordFolder<Thing>(temporaryFolder(t));
    const content = Promise.withResolvers<undefined>();
    const adding = records.add({ id: 'x', name: 'x', colour: 'red' }, () => content.promise);
    assert.equal(records.get('x'), undefined);
    content.resolve(undefined);
    await adding;
    assert.equal(records.get('x')?.colour, 'red');
  });

  test('records are in the order in which they were finished, so that pages of a list miss and repeat none', async (t) => {
    const records = new RecordFolder<Thing>(temporaryFolder(t));
    const content = Promise.withResolvers<undefined>();
    const slow = records.add({ id: 'slow', name: 'slow', colour: 'red' }, () => content.promise);
    await records.add({ id: 'fast', name: 'fast', colour: 'red' }, write);
    const first = listPage(records.all(), { max_entries: 1 });
    content.resolve(undefined);
    await slow;
    const second = listPage(records.all(), { max_entries: 1, starting_token: 'after-1' });
    assert.deepEqual(
      [...first.entries, ...second.entries].map(({ id, serial }) => [id, serial]),
      [
        ['fast', 1],
        ['slow', 2],
      ],
    );
    assert.equal(second.next_token, undefined);
  });

  test('what a killed process left unfinished is dropped', async (t) => {
    const folder = temporaryFolder(t);
    const records = new RecordFolder<Thing>(folder);
    await records.add({ id: 'whole', name: 'whole', colour: 'red' }, write);
    void records.add({ id: 'torn', name: 'torn', colour: 'red' }, () => new Promise(() => undefined));
    assert.deepEqual(readdirSync(folder).sort(), ['.new-torn', 'whole']);
    assert.deepEqual(
      new RecordFolder<Thing>(folder).all().map((record) => record.id),
      ['whole'],
    );
    assert.deepEqual(readdirSync(folder), ['whole']);
  });

  test('removing takes content and name, and may be repeated', async (t) => {
    const folder = temporaryFolder(t);
    const records = new RecordFolder<Thing>(folder);
    await records.add({ id: 'x', name: 'n', colour: 'red' }, write);
    await records.remove('x');
    await records.remove('x');
    assert.deepEqual([records.get('x'), records.getByName('n'), readdirSync(folder)], [undefined, undefined, []]);
  });

  test('a record that somebody removed by hand can still be removed', async (t) => {
    const folder = temporaryFolder(t);
    const records = new RecordFolder<Thing>(folder);
    await records.add({ id: 'x', name: 'n', colour: 'red' }, write);
    rmSync(path.join(folder, 'x'), { recursive: true });
    await records.remove('x');
    assert.deepEqual(records.all(), []);
  });

  test('a record that cannot be read stops the start instead of being forgotten', async (t) => {
    const folder = temporaryFolder(t);
    await new RecordFolder<Thing>(folder).add({ id: 'x', name: 'n', colour: 'red' }, write);
    writeFileSync(path.join(folder, 'x', 'record.json'), '{');
    assert.throws(() => new RecordFolder<Thing>(folder), SyntaxError);
    assert.ok(existsSync(path.join(folder, 'x', 'data')));
  });
});
