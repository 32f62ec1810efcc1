import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { format, inspect } from 'node:util';
import { goQuote } from '../../../src/base/go-quote.ts';
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
    const password = [SecretString.fromText('s3cret.*\n')];
    const text = 'login with s3cret.* failed, s3cret.*: no';
    assert.equal(SecretString.stripped(text, password), 'login with ***stripped*** failed, ***stripped***: no');
    assert.equal(SecretString.stripped('s3cretxx', password), 's3cretxx');
  });

  test('is left in a text where it is too short to be told from words', () => {
    const short = ['true', '12345', ' abc  '].map((text) => SecretString.fromText(text));
    for (const text of ['it is true', 'port 12345', ' abc  ']) assert.equal(SecretString.stripped(text, short), text);
    assert.equal(SecretString.stripped('of 123456.', [SecretString.fromText('123456')]), 'of ***stripped***.');
  });

  for (const values of [
    ['abcdefgh', 'abcdefgh-long-tail'],
    ['abcdefgh-long-tail', 'abcdefgh'],
  ]) {
    test(`leaves no tail of a value that begins with another: ${values.join(', ')}`, () => {
      const both = values.map((text) => SecretString.fromText(text));
      const text = 'one abcdefgh-long-tail, one abcdefgh';
      assert.equal(SecretString.stripped(text, both), 'one ***stripped***, one ***stripped***');
    });
  }

  test('leaves nothing of values that overlap in the text', () => {
    const values = ['user:alpha', 'alpha@home', 'aaaaaa'].map((text) => SecretString.fromText(text));
    assert.equal(SecretString.stripped('<user:alpha@home>', values), '<***stripped***>');
    assert.equal(SecretString.stripped('<aaaaaaaa>', values), '<***stripped***>');
  });

  test('is not looked for in what was put in its place', () => {
    const values = ['password', 'stripped'].map((text) => SecretString.fromText(text));
    assert.equal(SecretString.stripped('password', values), '***stripped***');
  });

  const awkward = 'pä?"\\ss<&>\t\u{1f511}~!/+ x';
  for (const { form, quoted } of [
    { form: 'as it is', quoted: awkward },
    { form: 'in JSON', quoted: JSON.stringify(awkward) },
    { form: 'in JSON of Go', quoted: '"pä?\\"\\\\ss\\u003c\\u0026\\u003e\\t\u{1f511}~!/+ x"' },
    { form: 'in JSON in ASCII', quoted: '"p\\u00e4?\\"\\\\ss<&>\\t\\ud83d\\udd11~!/+ x"' },
    { form: 'in JSON in JSON', quoted: JSON.stringify(JSON.stringify(awkward)).slice(3, -3) },
    { form: 'quoted by Go', quoted: goQuote(awkward) },
    { form: 'quoted by Go in ASCII', quoted: '"p\\u00e4?\\"\\\\ss<&>\\t\\U0001f511~!/+ x"' },
    { form: 'in JSON quoted by Go', quoted: goQuote(JSON.stringify(awkward)).slice(3, -3) },
    { form: 'as a part of a URL', quoted: encodeURIComponent(awkward) },
    { form: 'as a part of a URL in lower case', quoted: encodeURIComponent(awkward).replaceAll(/%../g, (code) => code.toLowerCase()) }, // prettier-ignore
    { form: 'as the query of a URL', quoted: new URLSearchParams([['k', awkward]]).toString().slice(2) },
    { form: 'as the query of a URL of Go', quoted: 'p%C3%A4%3F%22%5Css%3C%26%3E%09%F0%9F%94%91~%21%2F%2B+x' },
    { form: 'as the path of a URL of Go', quoted: 'p%C3%A4%3F%22%5Css%3C&%3E%09%F0%9F%94%91~%21%2F+%20x' },
    { form: 'in base64', quoted: Buffer.from(awkward).toString('base64') },
    { form: 'in base64 without padding', quoted: Buffer.from(awkward).toString('base64').replace(/=+$/, '') },
    { form: 'in base64 of URLs', quoted: Buffer.from(awkward).toString('base64url') },
    { form: 'in base64 of URLs with padding', quoted: Buffer.from(awkward).toString('base64').replaceAll('+', '-').replaceAll('/', '_') }, // prettier-ignore
    { form: 'in base64 in a URL', quoted: encodeURIComponent(Buffer.from(awkward).toString('base64')) },
    { form: 'in hexadecimal', quoted: Buffer.from(awkward).toString('hex') },
    { form: 'in hexadecimal in upper case', quoted: Buffer.from(awkward).toString('hex').toUpperCase() },
  ]) {
    test(`is taken out of a text ${form}`, () => {
      const text = SecretString.stripped(`say ${quoted}: no`, [SecretString.fromText(awkward)]);
      assert.match(text, /^say "?\*\*\*stripped\*\*\*"?: no$/);
    });
  }

  for (const user of ['', 'u', 'us', 'user']) {
    test(`is taken out of base64 behind ${JSON.stringify(user)} and before other text`, () => {
      const basic = Buffer.from(`${user}:correct horse:more`).toString('base64');
      const text = SecretString.stripped(basic, [SecretString.fromText('correct horse')]);
      assert.match(text, /^[\w+/]{1,8}\*\*\*stripped\*\*\*[\w+/]{1,8}=*$/);
    });
  }

  test('is taken out of a text as the bytes that it is', () => {
    const bytes = SecretString.fromBytes(Uint8Array.from([0xff, 0xfe, 1, 2, 3, 4, 5]));
    assert.equal(
      SecretString.stripped('key fffe0102030405, //4BAgMEBQ==', [bytes]),
      'key ***stripped***, ***stripped***',
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
