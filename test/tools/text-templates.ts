/** Texts as the sources write them, with holes for what varies, and whether a text that a page quotes is made of such ones. */
import ts from 'typescript';

/** What a name stands for; undefined: that is not known. */
type Resolve = (name: string) => string | undefined;

/** The pieces of a text between what varies; undefined where the node is no text. Names of constants are written out. */
export function piecesOf(node: ts.Node, resolve: Resolve = () => undefined): string[] | undefined {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isIdentifier(node)) {
    const text = resolve(node.text);
    return text === undefined ? undefined : [text];
  }
  if (ts.isTemplateExpression(node)) {
    return node.templateSpans.reduce<string[]>(
      (pieces, { expression, literal }) =>
        joined(joined(pieces, piecesOf(expression, resolve) ?? hole()), [literal.text]),
      [node.head.text],
    );
  }
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
    const left = piecesOf(node.left, resolve);
    const right = piecesOf(node.right, resolve);
    if (left !== undefined || right !== undefined) return joined(left ?? hole(), right ?? hole());
  }
  return undefined;
}

const hole = (): string[] => ['', ''];

function joined(left: readonly string[], right: readonly string[]): string[] {
  return [...left.slice(0, -1), (left.at(-1) ?? '') + (right[0] ?? ''), ...right.slice(1)];
}

/** Stands at the end of a quote for whatever follows. */
const rest = '\0';
/** A template with fewer letters fits nearly every text. */
const fewestLetters = 3;

/** Decides which texts the templates of the sources, and those of others, can be made into. */
export class TextTemplates {
  readonly #templates: readonly (readonly string[])[];
  readonly #known = new Map<string, boolean>();

  constructor(templates: Iterable<readonly string[]>) {
    const all = [...templates].filter((pieces) => lettersOf(pieces.join('')) >= fewestLetters);
    this.#templates = [...new Map(all.map((pieces) => [pieces.join('\0'), pieces])).values()];
  }

  get size(): number {
    return this.#templates.length;
  }

  /**
   * Whether a template says the text of a page. Words in capitals stand for what varies; `TEXT` at the end for the rest.
   * What stands in a hole is varying, or the text of another template, as of an error within an error.
   */
  makes(quote: string): boolean {
    return this.#makes(quote.replace(/TEXT$/, rest));
  }

  #makes(text: string): boolean {
    if (lettersOf(text.replaceAll(/[A-Z]/g, '')) === 0) return true;
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    this.#known.set(text, false); // a text is not made of itself
    const isMade = this.#templates.some((pieces) => this.#fits(text, pieces));
    this.#known.set(text, isMade);
    return isMade;
  }

  #fits(text: string, pieces: readonly string[]): boolean {
    if (!text.endsWith(rest) && !pieces.every((piece) => text.includes(piece))) return false;
    const [first = '', ...others] = pieces;
    if (text.endsWith(rest) && first.startsWith(text.slice(0, -1))) return lettersOf(text) >= fewestLetters;
    return text.startsWith(first) && this.#followed(text.slice(first.length), others, text.length);
  }

  /** The text after a piece: what is in the hole there, the next piece, and so on. */
  #followed(text: string, pieces: readonly string[], limit: number): boolean {
    const [next, ...others] = pieces;
    if (next === undefined) return text === '';
    if (text === rest) return true;
    for (let end = 0; end <= text.length; end++) {
      const inHole = text.slice(0, end);
      const after = text.slice(end);
      const goesOn =
        after.startsWith(next) && (others.length > 0 || after === next)
          ? this.#followed(after.slice(next.length), others, limit)
          : next !== '' && after.endsWith(rest) && next.startsWith(after.slice(0, -1));
      if (goesOn && inHole.length < limit && this.#makes(inHole)) return true;
    }
    return false;
  }
}

function lettersOf(text: string): number {
  return text.replaceAll(/[^a-zA-Z]/g, '').length;
}
