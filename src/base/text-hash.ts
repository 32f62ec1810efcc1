const prime = 0x01000193;
/** The hash of the empty text. */
const offsetBasis = 0x811c9dc5;

/** FNV-1a with 32 bits over the UTF-16 code units, as a signed integer. @param before - the hash of the text that precedes this one. */
export function fnv1a(text: string, before = offsetBasis): number {
  let hash = before;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), prime);
  return hash | 0;
}
