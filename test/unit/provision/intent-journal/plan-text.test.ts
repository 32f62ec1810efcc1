import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { packText, unpackText } from '../../../../src/provision/intent-journal/plan-text.ts';
import { anyText } from '../../../support/any-text.ts';

const base64 = (packed: Buffer): string => `gzip:${packed.toString('base64')}`;

test('every JSON is unpacked as it was, and is never longer packed', () => {
  const text = fc
    .tuple(fc.json(), anyText(), fc.nat({ max: 9000 }))
    .map(([value, noise, length]) => JSON.stringify([value, noise, 'x'.repeat(length)]));
  fc.assert(
    fc.property(text, (each) => {
      const packed = packText(each);
      assert.equal(unpackText(packed), each);
      assert.ok(packed.length <= Buffer.byteLength(each));
    }),
  );
});

test('short texts stay readable, long ones can be read with base64 and gunzip', () => {
  assert.equal(packText('[1]'), '[1]');
  const long = JSON.stringify('ä'.repeat(4096));
  const [mark, packed = ''] = packText(long).split(':');
  assert.equal(mark, 'gzip');
  assert.equal(gunzipSync(Buffer.from(packed, 'base64')).toString(), long);
});

test('a text that does not become shorter stays as it is', () => {
  const noise = JSON.stringify(randomBytes(6000).toString('base64'));
  assert.equal(packText(noise), noise);
});

for (const [what, stored] of [
  ['that is cut off', packText(JSON.stringify('x'.repeat(5000))).slice(0, -8)],
  ['with a wrong checksum', base64(Buffer.concat([gzipSync('[]').subarray(0, -8), Buffer.alloc(8)]))],
  ['of another format', base64(Buffer.from('[]'))],
  ['of more than 16 MiB', base64(gzipSync(Buffer.alloc(17 * 1024 * 1024, 0x20)))],
] as const) {
  test(`a packed text ${what} is refused`, () => {
    assert.throws(() => unpackText(stored));
  });
}
