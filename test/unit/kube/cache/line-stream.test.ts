import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { lines } from '../../../../src/kube/cache/line-stream.ts';

async function split(chunks: Iterable<Uint8Array>): Promise<string[]> {
  const read: string[] = [];
  for await (const line of lines(asStream(chunks))) read.push(line);
  return read;
}

async function* asStream(chunks: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) {
    await Promise.resolve();
    yield chunk;
  }
}

describe('lines', () => {
  test('joins bytes before it reads characters', async () => {
    const bytes = Buffer.from('{"a":"é€😀"}\n');
    assert.deepEqual(await split([...bytes].map((byte) => Uint8Array.of(byte))), ['{"a":"é€😀"}']);
  });

  test('drops a last line without its end, and empty lines', async () => {
    assert.deepEqual(await split([Buffer.from('a\n\nb\nc')]), ['a', 'b']);
  });

  test('gives the same lines wherever the chunks end', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'grapheme', minLength: 1 }).filter((line) => !line.includes('\n'))),
        fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
        async (texts, sizes) => {
          const bytes = Buffer.from(texts.map((line) => `${line}\n`).join(''));
          const chunks: Uint8Array[] = [];
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const size = sizes[i % sizes.length] ?? 1;
            chunks.push(bytes.subarray(at, at + size));
            at += size;
          }
          assert.deepEqual(await split(chunks), texts);
        },
      ),
    );
  });
});
