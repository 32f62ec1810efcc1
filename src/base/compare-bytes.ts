/**
 * Orders texts by the bytes of their UTF-8 form, as Go and etcd do: no locale, no case folding. The plain operators of
 * JavaScript compare 16-bit units, which puts characters beyond U+FFFF before some that come earlier in Unicode.
 *
 * @returns negative, zero or positive, for `sort`.
 */
export function compareBytes(a: string, b: string): number {
  if (a === b) return 0; // by far the fastest where many texts are the same
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const [one, other] = [a.charCodeAt(index), b.charCodeAt(index)];
    if (one !== other) return rank(one) - rank(other);
  }
  return a.length - b.length;
}

/** Halves of surrogate pairs, 0xd800 to 0xdfff, stand for characters after all others. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
