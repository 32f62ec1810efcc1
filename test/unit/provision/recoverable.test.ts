import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkPlan } from '../../../src/provision/recoverable.ts';

class Folder {
  readonly path = '/volumes/a';
}

describe('a plan', () => {
  test('may hold what JSON gives back as it was', () => {
    const plan = {
      text: 'a',
      number: -1.5,
      yes: true,
      none: null,
      absent: undefined,
      list: [1, ['a'], {}],
      bare: Object.assign(Object.create(null) as object, { a: 1 }),
      frozen: Object.freeze({ deep: { deeper: [{ a: 1 }] } }),
    };
    checkPlan(plan);
  });

  const refused: [title: string, plan: unknown, kind: string][] = [
    ['a Date', { volume: { expires: new Date(0) } }, 'an instance of Date at "volume.expires"'],
    ['a BigInt', { bytes: 5n }, 'a bigint at "bytes"'],
    ['a number that is none', { bytes: NaN }, 'NaN at "bytes"'],
    ['an infinite number', { bytes: [Infinity] }, 'Infinity at "bytes.0"'],
    ['a hole in an array', { list: [1, undefined] }, 'undefined at "list.1"'],
    ['a Map', { labels: new Map([['a', 1]]) }, 'an instance of Map at "labels"'],
    ['a Buffer', { data: Buffer.from('a') }, 'an instance of Buffer at "data"'],
    ['an object of a class', { folder: new Folder() }, 'an instance of Folder at "folder"'],
    [
      'an object of a class without a name',
      {
        folder: new (class {
          readonly zone = 'a';
        })(),
      },
      'an instance of a class without a name at "folder"',
    ],
    ['a function', { make: () => 1 }, 'a function at "make"'],
    ['toJSON', { at: { toJSON: () => 'a' } }, 'an object with a method toJSON, or of no class at "at"'],
    ['nothing', undefined, 'undefined'],
    ['an array for an object', ['a'], 'an array'],
    ['a text for an object', 'a', 'a string'],
  ];
  for (const [title, plan, kind] of refused) {
    test(`is refused with ${title}, whose place is named`, () => {
      assert.throws(
        () => checkPlan(plan),
        (error: Error) =>
          error instanceof TypeError && error.message.startsWith(`plan() returned ${kind}: a plan is stored as JSON`),
      );
    });
  }

  test('is refused when it contains itself', () => {
    const plan: Record<string, unknown> = { list: [] };
    (plan['list'] as unknown[]).push(plan);
    assert.throws(() => checkPlan(plan), /^TypeError: plan\(\) returned an object that contains itself/);
  });

  test('may share a long array with others, which is read once', () => {
    let reads = 0;
    const node = { get zone(): string { return `zone-${reads++}`; } }; // prettier-ignore
    const requisite = [...Array<object>(200).fill({}), node];
    checkPlan({ requisite });
    checkPlan({ requisite });
    assert.equal(reads, 1);
  });
});
