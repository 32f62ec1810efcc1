import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { lines, readList } from '../../../../src/kube/cache/list-stream.ts';
import { anyText } from '../../../support/any-text.ts';

async function* inPieces(text: string, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = Math.max(1, sizes[i % sizes.length] ?? 1);
    yield bytes.subarray(at, at + size);
    await Promise.resolve();
    at += size;
  }
}

async function read(
  text: string,
  sizes: readonly number[] = [text.length],
): Promise<{ items: unknown[]; envelope: unknown }> {
  const items: unknown[] = [];
  const envelope = await readList(inPieces(text, sizes), { onItem: (item) => items.push(item) });
  return { items, envelope };
}

describe('readList', () => {
  test('hands out the items and keeps what stands around them', async () => {
    const text =
      '{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"x"},"items":[{"a":1},{"b":[2,{"c":3}]}]}';
    assert.deepEqual(await read(text), {
      items: [{ a: 1 }, { b: [2, { c: 3 }] }],
      envelope: { kind: 'PodList', metadata: { resourceVersion: '7', continue: 'x' }, items: [] },
    });
  });

  test('reads metadata that comes after the items, and null items', async () => {
    assert.deepEqual(await read('{"items":[{"a":1}],"metadata":{"resourceVersion":"9"}}'), {
      items: [{ a: 1 }],
      envelope: { items: [], metadata: { resourceVersion: '9' } },
    });
    assert.deepEqual((await read('{"items":null,"metadata":{}}')).items, []);
  });

  test('is not misled by an "items" deeper down or as a value', async () => {
    const text = '{"kind":"items","metadata":{"items":[{"no":1}]},"items":[{"items":[{"yes":1}]}]}';
    assert.deepEqual((await read(text)).items, [{ items: [{ yes: 1 }] }]);
  });

  test('throws when the answer is truncated', async () => {
    await assert.rejects(read('{"kind":"PodList","items":[{"a":1},{"b"'), SyntaxError);
  });

  test('gives what JSON.parse gives, wherever the chunks end', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        async (items, sizes, indented) => {
          const list = { kind: 'é"\\\\', metadata: { resourceVersion: '5' }, items };
          const text = JSON.stringify(list, undefined, indented ? 1 : undefined);
          const want = JSON.parse(text) as { items: unknown[] };
          assert.deepEqual((await read(text, sizes)).items, want.items);
        },
      ),
      { numRuns: 300 },
    );
  });
});

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
        fc.array(anyText({ minLength: 1 }).filter((line) => !line.includes('\n'))),
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
