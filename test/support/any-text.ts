import fc from 'fast-check';

/** What no UTF-16 text has alone. */
const surrogates = { first: 0xd800, last: 0xdfff };

const codePoint = fc
  .oneof(fc.integer({ min: 0, max: surrogates.first - 1 }), fc.integer({ min: surrogates.last + 1, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code));

/** Text of any code points. For its own units of that kind, fast-check makes a table of a million entries each time. */
export function anyText(constraints: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.string({ ...constraints, unit: codePoint });
}
