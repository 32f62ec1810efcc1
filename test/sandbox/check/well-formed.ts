/** What keeps a text from being well-formed XML, as far as our reports use XML; undefined if nothing does. */
export function wellFormed(xml: string): string | undefined {
  const open: string[] = [];
  const body = xml.replace(/^<\?xml version="1\.0" encoding="UTF-8"\?>\n/, '');
  const notInXml = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/u.exec(xml);
  if (notInXml !== null) return `a character that XML cannot hold at ${notInXml.index}`;
  for (const part of body.split(/(<[^>]*>)/)) {
    if (!part.startsWith('<')) {
      if (/&(?!(amp|lt|gt|quot|#\d+);)/.test(part)) return `a bare ampersand in ${part}`;
      continue;
    }
    const [, end, name = '', , empty] =
      /^<(\/?)([a-z-]+)((?: [a-z-]+="(?:[^<&"]|&(?:amp|lt|gt|quot|#\d+);)*")*)(\/?)>$/.exec(part) ?? [];
    if (name === '') return `no tag: ${part}`;
    if (end === '/' && open.pop() !== name) return `an end without a beginning: ${part}`;
    if (end === '' && empty === '') open.push(name);
  }
  return open.length === 0 ? undefined : `no end of ${open.join(', ')}`;
}
