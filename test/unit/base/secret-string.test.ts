import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { format, inspect } from 'node:util';
import { SecretEncodingError, SecretString } from '../../../src/base/secret-string.ts';

const value = 'hunter2';
const secret = SecretString.fromText(value);

describe('SecretString', () => {
  const shown: Record<string, string> = {
    JSON: JSON.stringify({ nested: [secret] }),
    inspect: inspect({ nested: [secret] }, { depth: 9, showHidden: true }),
    format: format('%s %o %j', secret, secret, secret),
    String: String(secret),
    // eslint-disable-next-line @typescript-eslint/restrict-template-expressions -- what must not leak even by mistake
    template: `${secret}`,
  };
  for (const [way, text] of Object.entries(shown)) {
    test(`${way} shows that something is there and not what`, () => {
      assert.ok(!text.includes(value));
      assert.ok(text.includes('***stripped***'));
    });
  }

  test('has no property that somebody could copy', () => assert.deepEqual(Reflect.ownKeys(secret), []));

  test('only reveal gives the value', () => assert.equal(secret.reveal(), value));

  test('bytes come out as the text they are, a byte order mark included', () => {
    const text = '\ufeffgrüße';
    assert.equal(SecretString.fromBytes(new TextEncoder().encode(text)).reveal(), text);
  });

  test('is taken out of the texts of others, wherever it stands and without the line end of a file', () => {
    const password = SecretString.fromText('s3cret.*\n');
    assert.equal(
      password.strippedFrom('login with s3cret.* failed, s3cret.*: no'),
      'login with ***stripped*** failed, ***stripped***: no',
    );
    assert.equal(password.strippedFrom('s3cretxx'), 's3cretxx');
    assert.equal(
      SecretString.fromText('true').strippedFrom('it is true'),
      'it is true',
      'too short to be told from words',
    );
  });

  test('bytes are copied', () => {
    const bytes = new TextEncoder().encode(value);
    const copy = SecretString.fromBytes(bytes);
    bytes.fill(0);
    assert.equal(copy.reveal(), value);
  });

  for (const bytes of [
    [0xff, 0xfe],
    [0xc0, 0x80],
    [0xed, 0xa0, 0x80],
    [0xe2, 0x82],
  ]) {
    test(`bytes ${bytes.join(' ')} are no text and never replaced by one`, () => {
      const error = new SecretEncodingError('string field contains invalid UTF-8');
      assert.throws(() => SecretString.fromBytes(Uint8Array.from(bytes)).reveal(), error);
    });
  }
});
