/** Go's short escapes for control characters. */
const shortEscapes = new Map([
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
  ['\\', '\\\\'],
  ['"', '\\"'],
]);

/** What needs no escape: letters, marks, numbers, punctuation, symbols and the plain blank. */
const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/** Only characters that are never escaped: the common case, decided at once. */
const plainAscii = /^[ !#-[\]-~]*$/;

/**
 * A text in double quotes, escaped as Go's `strconv.Quote` does: the form of values in error texts and in klog lines.
 * The result never holds a line break.
 */
export function goQuote(text: string): string {
  if (plainAscii.test(text)) return `"${text}"`;
  let quoted = '"';
  for (const character of text) quoted += shortEscapes.get(character) ?? escapeUnprintable(character);
  return `${quoted}"`;
}

function escapeUnprintable(character: string): string {
  if (printable.test(character)) return character;
  const code = character.codePointAt(0) ?? 0;
  if (code >= 0xd800 && code <= 0xdfff) return '\ufffd'; // half a surrogate pair: no text in UTF-8
  if (code < 0x80) return `\\x${hex(code, 2)}`;
  return code <= 0xffff ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}
