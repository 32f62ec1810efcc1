/**
 * For the bundle, where a stack trace would name positions of one minified file: each call of a logger gets its
 * position in the sources as one more argument, so that the header of its line names it and no trace is taken.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Plugin } from 'esbuild';
import ts from 'typescript';

/** How many arguments the methods of `ProcessLogger` have before the caller. */
const argumentsBefore: Record<string, number> = { error: 2, warn: 2, info: 2, debug: 2, trace: 2, lastLine: 3 };

/** Adds its position to every call of a logger in the sources, such as `csi/driver.ts:112`. */
export const callersInlined: Plugin = {
  name: 'callers-inlined',
  setup: (plugged) => {
    plugged.onLoad({ filter: /[/\\]src[/\\].*\.ts$/ }, async ({ path: file }) => {
      if (file.includes('node_modules')) return undefined;
      return { contents: withCallers(file, await readFile(file, 'utf8')), loader: 'ts' };
    });
  },
};

/** The source with the positions added; line breaks stay where they are. */
export function withCallers(file: string, source: string): string {
  const parsed = ts.createSourceFile(file, source, ts.ScriptTarget.ESNext);
  const insertions: { at: number; text: string }[] = [];
  const visit = (node: ts.Node): void => {
    ts.forEachChild(node, visit);
    if (!ts.isCallExpression(node) || !isLogging(node, parsed)) return;
    const line = parsed.getLineAndCharacterOfPosition(node.expression.getEnd()).line + 1;
    const position = `${path.basename(path.dirname(file))}/${path.basename(file)}:${line}`;
    insertions.push({ at: node.arguments.at(-1)?.getEnd() ?? 0, text: `, ${JSON.stringify(position)}` });
  };
  visit(parsed);
  let result = source;
  for (const { at, text } of insertions.toSorted((a, b) => b.at - a.at)) {
    result = result.slice(0, at) + text + result.slice(at);
  }
  return result;
}

/** `logger.info(fields, message)` and `this.#logger[level](fields, message)`, whatever stands before the logger. */
function isLogging({ expression, arguments: args }: ts.CallExpression, file: ts.SourceFile): boolean {
  if (!ts.isPropertyAccessExpression(expression) && !ts.isElementAccessExpression(expression)) return false;
  if (!/logger$/i.test(expression.expression.getText(file))) return false;
  const method = ts.isPropertyAccessExpression(expression) ? expression.name.text : 'info';
  return args.length === argumentsBefore[method];
}
