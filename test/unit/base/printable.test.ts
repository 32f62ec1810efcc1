import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printable } from '../../../src/base/printable.ts';

test('leaves text of any script as it is', () => {
  assert.equal(printable('pool/Größe#1 = 卷'), 'pool/Größe#1 = 卷');
});

test('escapes what moves a cursor, breaks a line, turns the direction or is invisible', () => {
  assert.equal(printable('a\u001b[2J\r\n\tb'), 'a\\u001b[2J\\u000d\\u000a\\u0009b');
  assert.equal(printable('\u202e\u200b\u2028\u009b'), '\\u202e\\u200b\\u2028\\u009b');
  assert.equal(printable('\u{e0001}\ud800'), '\\udb40\\udc01\\ud800');
});
