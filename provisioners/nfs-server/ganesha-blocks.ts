/** The blocks of ganesha's configuration (ganesha-config(8)), also of one that is damaged. */

/** A block at the top level. */
export interface Block {
  readonly name: string;
  /** What is between its braces, without comments. */
  readonly body: string;
  readonly start: number;
  readonly end: number;
}

/** A part of a text, from its first character to the one after its last. */
export interface Part {
  readonly start: number;
  readonly end: number;
}

/** Blocks that ganesha knows only at the top level: where one begins, the one before it has ended, however damaged it is. */
const topLevel = [
  ...[
    'EXPORT',
    'EXPORT_DEFAULTS',
    'NFS_CORE_PARAM',
    'NFS_IP_NAME',
    'NFS_KRB5',
    'NFSV4',
    'CACHEINODE',
    'MDCACHE',
    'LOG',
  ],
  ...['DIRECTORY_SERVICES', 'RADOS_KV', 'RADOS_URLS'],
];

/** White space, a comment, or a directive to the end of the line. */
const filling = String.raw`(?:\s|[#%][^\n]*)*`;
const blockHead = new RegExp(String.raw`([A-Za-z_]\w*)${filling}\{`, 'y');
const nextHead = new RegExp(String.raw`^[ \t]*(?=(?:${topLevel.join('|')})\b${filling}\{)`, 'gim');
// a comment or a directive to the end of the line, a quoted text, a brace, or a run of anything else
const tokens = /[#%][^\n]*|"[^"\n]*"|'[^'\n]*'|[{}]|\s+|[^\s#%"'{}]+|["']/y;

/**
 * Finds all blocks. What is no block, such as one with an unclosed quote, counts as damaged up to the next line that begins
 * a top-level block.
 */
export function readBlocks(config: string): { blocks: Block[]; damaged: Part[] } {
  const blocks: Block[] = [];
  const damaged: Part[] = [];
  let at = afterFilling(config, 0);
  while (at < config.length) {
    const block = blockAt(config, at);
    if (block === undefined) damaged.push({ start: at, end: nextBlock(config, at + 1) });
    else blocks.push(block);
    at = afterFilling(config, block?.end ?? damaged.at(-1)?.end ?? config.length);
  }
  return { blocks, damaged };
}

function afterFilling(config: string, from: number): number {
  const skipped = new RegExp(filling, 'y');
  skipped.lastIndex = from;
  return from + (skipped.exec(config)?.[0].length ?? 0);
}

function nextBlock(config: string, from: number): number {
  nextHead.lastIndex = from;
  return nextHead.exec(config)?.index ?? config.length;
}

/** The block that begins there; undefined when it is not whole. */
function blockAt(config: string, start: number): Block | undefined {
  blockHead.lastIndex = start;
  const [head, name = ''] = blockHead.exec(config) ?? [];
  if (head === undefined) return undefined;
  let [body, word, depth] = ['', '', 1];
  tokens.lastIndex = start + head.length;
  for (let [token] = next(config); token !== undefined; [token] = next(config)) {
    if (token === '"' || token === "'") return undefined;
    if (token === '}' && --depth === 0) return { name, body, start, end: tokens.lastIndex };
    if (token === '{' && topLevel.includes(word.toUpperCase())) return undefined; // the end of this one is missing
    if (token === '{') depth += 1;
    const isFilling = /^[\s#%]/.test(token);
    if (!isFilling) word = token;
    body += isFilling ? ' ' : token;
  }
  return undefined;
}

function next(config: string): [token?: string] {
  return (tokens.exec(config) ?? []) as [token?: string];
}
