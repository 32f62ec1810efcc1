import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { firstTopology, fnv1, hashInput } from '../../../../src/csi/topology/topology.ts';
import { anyText } from '../../../support/any-text.ts';

/** Name, what of it is hashed, its FNV-1, the ordinal, and the place among 2, 3, 4 and 5. */
const vectors = [
  { name: 'testpvc', text: 'testpvc', hash: 0x64694d56, index: 0, places: [0, 2, 2, 3] },
  { name: 'testpvcA-testset-1', text: 'testset', hash: 0x61628cc3, index: 1, places: [0, 0, 0, 1] },
  { name: 'testset-2', text: 'testset', hash: 0x61628cc3, index: 2, places: [1, 1, 1, 2] },
  { name: 'data-web-0', text: 'web', hash: 0x46661985, index: 0, places: [1, 0, 1, 0] },
  { name: 'data-web-1', text: 'web', hash: 0x46661985, index: 1, places: [0, 1, 2, 1] },
  { name: 'data-web-2', text: 'web', hash: 0x46661985, index: 2, places: [1, 2, 3, 2] },
  { name: 'data-web-10', text: 'web', hash: 0x46661985, index: 10, places: [1, 1, 3, 0] },
  { name: 'web-007', text: 'web', hash: 0x46661985, index: 7, places: [0, 1, 0, 2] },
  { name: 'www-my-app-0', text: 'app', hash: 0x359c196e, index: 0, places: [0, 2, 2, 4] },
  { name: 'a-1-2', text: '1', hash: 0x050c5d2e, index: 2, places: [0, 2, 0, 3] },
  { name: 'my-claim-x', text: 'my-claim-x', hash: 0x2f6e298b, index: 0, places: [1, 1, 3, 2] },
  { name: 'data-web-1a', text: 'data-web-1a', hash: 0x0c7bde9b, index: 0, places: [1, 2, 3, 2] },
  { name: 'data--1', text: '', hash: 0x811c9dc5, index: 1, places: [0, 2, 2, 2] },
  { name: 'data-web-4294967295', text: 'web', hash: 0x46661985, index: 4294967295, places: [0, 2, 0, 4] },
  { name: 'data-web-4294967296', text: 'data-web-4294967296', hash: 0x92109e77, index: 0, places: [1, 1, 3, 4] },
];

/** FNV-1 by its definition, in numbers of any size. */
function slowFnv1(text: string): number {
  let hash = 2166136261n;
  for (const byte of Buffer.from(text)) hash = ((hash * 16777619n) % 2n ** 32n) ^ BigInt(byte);
  return Number(hash);
}

describe('the preferred topology of a claim', () => {
  for (const { name, text, hash, index, places } of vectors) {
    test(name, () => {
      assert.deepEqual(hashInput(name), { text, index });
      assert.equal(fnv1(text), hash);
      assert.deepEqual(
        [2, 3, 4, 5].map((count) => firstTopology(name, count)),
        places,
      );
    });
  }

  test('only plain digits are an ordinal', () => {
    for (const name of ['a-', 'a-+1', 'a-1_0', 'a-١', 'a-1.5', 'a-0x1', 'web']) {
      assert.deepEqual(hashInput(name), { text: name, index: 0 });
    }
    assert.deepEqual(hashInput('-1'), { text: '', index: 1 });
  });

  test('claims of a StatefulSet prefer one topology after the other, whatever their template', () => {
    const word = fc.stringMatching(/^[a-z]([a-z0-9]{0,8}[a-z])?$/);
    fc.assert(
      fc.property(
        word,
        word,
        word,
        fc.nat(1000),
        fc.integer({ min: 1, max: 50 }),
        (one, other, set, ordinal, places) => {
          const place = firstTopology(`${one}-${set}-${ordinal}`, places);
          assert.ok(place >= 0 && place < places);
          assert.equal(firstTopology(`${other}-${set}-${ordinal}`, places), place);
          const steps = 2 ** 32 - 1 - fnv1(set) - ordinal > 0 ? 1 : 0; // beyond 32 bits the count starts anew
          if (steps === 1) assert.equal(firstTopology(`${one}-${set}-${ordinal + 1}`, places), (place + 1) % places);
        },
      ),
    );
  });

  test('the hash is FNV-1 for any text', () => {
    fc.assert(fc.property(anyText(), (text) => assert.equal(fnv1(text), slowFnv1(text))));
  });
});
