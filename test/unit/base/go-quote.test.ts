import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { goQuote } from '../../../src/base/go-quote.ts';
import { anyText } from '../../support/any-text.ts';

describe('goQuote', () => {
  const cases: [string, string][] = [
    ['', '""'],
    ['plain text', '"plain text"'],
    ['say "hi"', '"say \\"hi\\""'],
    ['back\\slash', '"back\\\\slash"'],
    ['\x07\b\f\n\r\t\v', '"\\a\\b\\f\\n\\r\\t\\v"'],
    ['\x00\x1b\x7f', '"\\x00\\x1b\\x7f"'],
    ['\u00e4 \u4e16 \u{1f600}', '"\u00e4 \u4e16 \u{1f600}"'],
    ['\u00a0\u2028\u202e', '"\\u00a0\\u2028\\u202e"'],
    ['\u{e0001}', '"\\U000e0001"'],
    ['a\ud800b', '"a\ufffdb"'],
  ];
  for (const [text, want] of cases) {
    test(`quotes ${JSON.stringify(text)}`, () => assert.equal(goQuote(text), want));
  }

  test('never lets a line break or a bare quote through', () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        const quoted = goQuote(text);
        assert.doesNotMatch(quoted, /[\p{Cc}\u2028\u2029]/u);
        assert.match(quoted, /^"(?:[^"\\]|\\.)*"$/u);
      }),
    );
  });
});
