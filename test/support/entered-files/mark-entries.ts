/** Source text whose functions say that they were entered. */
import ts from 'typescript';

/**
 * Puts a call of the global function `name` with `file` and the function's own name at the beginning of each function, without a
 * new line: positions in stack traces stay those of the lines that were written.
 */
export function markEntries(source: string, { name, file }: { name: string; file: string }): string {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
  const insertions: { at: number; text: string }[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const call = `${name}(${JSON.stringify(file)}, ${JSON.stringify(nameOf(node))})`;
      const body = node.body;
      if (ts.isBlock(body)) insertions.push({ at: body.getStart(tree) + 1, text: ` ${call};` });
      else insertions.push({ at: body.getStart(tree), text: `(${call}, ` }, { at: body.getEnd(), text: ')' });
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  let text = source;
  for (const { at, text: inserted } of insertions.toSorted((one, other) => other.at - one.at))
    text = text.slice(0, at) + inserted + text.slice(at); // from the end, so that earlier positions stay
  return text;
}

function nameOf(node: ts.SignatureDeclaration): string {
  if (ts.isConstructorDeclaration(node)) return 'constructor';
  const { parent } = node;
  const holder =
    ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) || ts.isPropertyDeclaration(parent);
  return (node.name ?? (holder ? parent.name : undefined))?.getText() ?? '';
}
