import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { withoutContents } from '../../../src/diagnostics/heap-snapshot.ts';

/** Two strings, one of which is also the name of a property, and an object. */
const snapshot = JSON.stringify({
  snapshot: {
    meta: {
      node_fields: ['type', 'name', 'id'],
      node_types: [['object', 'string', 'sliced string'], 'string', 'number'],
      edge_fields: ['type', 'name_or_index', 'to_node'],
      edge_types: [['property', 'element'], 'string_or_number', 'node'],
    },
    node_count: 4,
    edge_count: 2,
  },
  nodes: [0, 0, 1, 1, 1, 3, 1, 2, 5, 2, 3, 7],
  edges: [0, 2, 3, 1, 1, 6],
  samples: [],
  strings: ['Claim', 'a "secret" \\ with \n]', 'name', 'another\u0007'],
});
const expected = ['Claim', '(withheld)', 'name', '(withheld)'];

async function read(chunks: readonly string[]): Promise<string> {
  let text = '';
  for await (const part of withoutContents(streamed(chunks))) text += part;
  return text;
}

async function* streamed(chunks: readonly string[]): AsyncGenerator<string> {
  for (const chunk of chunks) yield await Promise.resolve(chunk);
}

describe('withoutContents', () => {
  test('takes out what strings say, and leaves names and everything else', async () => {
    const { strings, ...rest } = JSON.parse(await read([snapshot])) as { strings: string[] };
    const { strings: _, ...before } = JSON.parse(snapshot) as { strings: string[] };
    assert.deepEqual(strings, expected);
    assert.deepEqual(rest, before);
  });

  test('gives the same wherever the chunks are cut', async () => {
    const whole = await read([snapshot]);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(snapshot.length), { maxLength: 40 }), async (cuts) => {
        const places = [0, ...cuts.toSorted((a, b) => a - b), snapshot.length];
        const chunks = places.slice(1).map((end, index) => snapshot.slice(places[index], end));
        assert.equal(await read(chunks), whole);
      }),
    );
    assert.equal(await read(snapshot.split('')), whole);
  });

  for (const end of [0, 10, snapshot.indexOf('"edges"'), snapshot.indexOf('"strings"'), snapshot.length - 4]) {
    test(`refuses a text that ends at ${end}`, async () => {
      await assert.rejects(read([snapshot.slice(0, end)]), /ended too early/);
    });
  }

  test('refuses lists of another layout', async () => {
    await assert.rejects(read([snapshot.replace('"name","id"', '"label","id"')]), /has no type before name/);
  });
});
