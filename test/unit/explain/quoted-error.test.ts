import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { quotedError } from '../../../src/explain/texts.ts';

describe('an error in an explanation', () => {
  test('is quoted whole where it is short, on one line', () => {
    assert.equal(
      quotedError(' rpc error: code = Internal desc = on\n\tfire \n'),
      'rpc error: code = Internal desc = on fire',
    );
  });

  test('is quoted with both ends where it is long: the code, and what was wrapped', () => {
    const text = `rpc error: code = Internal desc = mount failed: ${'Mounting arguments: -t nfs '.repeat(100)}Output: access denied by server`;
    const quoted = quotedError(text);
    assert.match(quoted, /^rpc error: code = Internal desc = mount failed: .* … .*Output: access denied by server$/);
    assert.ok(quoted.length < 600, String(quoted.length));
  });

  test('is quoted with the code that the storage gives, between both ends', () => {
    const text = `rpc error: code = Internal desc = New volume creation failed ${'a b '.repeat(60)}Error Code: NotAuthorizedOrNotFound. Opc request id: 1 ${'tips '.repeat(200)}`;
    assert.match(quotedError(text), / … Error Code: NotAuthorizedOrNotFound\. Opc request id: 1 .* … tips /);
  });

  test('breaks no character apart', () => {
    assert.ok(quotedError('😀'.repeat(2000)).isWellFormed());
    assert.ok(quotedError(`a${'😀'.repeat(2000)}`).isWellFormed());
  });
});
