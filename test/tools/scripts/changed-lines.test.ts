import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { changedLines } from '../../../scripts/api/changed-lines.ts';

describe('changedLines', () => {
  test('finds nothing in equal texts', () => {
    assert.deepEqual(changedLines('a\n\nb\n', 'a\n\nb\n'), []);
  });

  test('shows what is gone and what is new', () => {
    assert.deepEqual(changedLines('a\nb\nc\n', 'a\nc\nd\n'), ['- b', '+ d']);
  });

  test('counts a line that is there more than once', () => {
    assert.deepEqual(changedLines('a\nname: string;\n', 'a\nname: string;\nname: string;\n'), ['+ name: string;']);
  });

  test('says when only the order has changed', () => {
    assert.deepEqual(changedLines('a\nb\n', 'b\na\n'), ['the order of the lines is another']);
  });
});
