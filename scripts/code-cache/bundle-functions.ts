/** The functions of a bundle, under names that stay while code around them changes. */
import { readFile } from 'node:fs/promises';
import { SourceMap, type SourceMapPayload } from 'node:module';
import ts from 'typescript';

/** Where a function is in a file, in characters. */
export interface FunctionRange {
  readonly start: number;
  readonly end: number;
}

export interface BundledFunction extends FunctionRange {
  /** Where its body begins. */
  readonly body: number;
  /** The file that it comes from, and the names of the functions and classes around it and its own. */
  readonly name: string;
}

/**
 * @param file - a bundle of esbuild, with its source map beside it.
 * @returns its functions in the order in which they begin.
 */
export async function bundleFunctions(file: string): Promise<BundledFunction[]> {
  const text = await readFile(file, 'latin1');
  const map = new SourceMap(JSON.parse(await readFile(`${file}.map`, 'utf8')) as SourceMapPayload);
  const parsed = ts.createSourceFile(file, text, ts.ScriptTarget.ESNext, true, ts.ScriptKind.JS);
  const found: BundledFunction[] = [];
  const sourceOf = (position: number): string => {
    const { line, character } = parsed.getLineAndCharacterOfPosition(position);
    const entry = map.findEntry(line, character);
    return 'originalSource' in entry ? entry.originalSource.replace(/^(\.\.\/)+/, '') : '';
  };
  const visit = (node: ts.Node, around: readonly string[]): void => {
    const names = isNamed(node) ? [...around, nameOf(node)] : around;
    const body = ts.isFunctionLike(node) && 'body' in node ? (node.body as ts.Node | undefined) : undefined;
    if (body !== undefined) {
      const start = node.getStart(parsed);
      found.push({ start, end: node.getEnd(), body: body.getStart(parsed), name: fullName(names, sourceOf(start)) });
    }
    ts.forEachChild(node, (child) => visit(child, names));
  };
  visit(parsed, []);
  return found;
}

/** A package in CommonJS is a function of its own, whose name is the file. */
function fullName(names: readonly string[], source: string): string {
  const [, file] = /^"(.*)"$/.exec(names[0] ?? '') ?? [];
  return file === undefined ? `${source} ${names.join('.')}` : `${file} ${names.slice(1).join('.')}`.trim();
}

const isNamed = (node: ts.Node): node is ts.FunctionLikeDeclaration | ts.ClassLikeDeclaration =>
  ts.isFunctionLike(node) || ts.isClassLike(node);

/** Of a function without a name, that of the variable or property that it is assigned to. */
function nameOf(node: ts.FunctionLikeDeclaration | ts.ClassLikeDeclaration): string {
  const named = node.name ?? ('name' in node.parent ? node.parent.name : undefined);
  // esbuild adds a number to names that are there already
  return named === undefined ? '_' : named.getText().replaceAll(/\s+/g, ' ').replace(/\d+$/, '');
}

/** The functions in which the ranges are that V8 reports. It takes some words before a function for a part of it, or not. */
export function functionsAt(
  functions: readonly BundledFunction[],
  ranges: readonly FunctionRange[],
): BundledFunction[] {
  const byEnd = Map.groupBy(functions, ({ end }) => end);
  return ranges.flatMap(({ start, end }) => {
    const nearest = byEnd.get(end)?.toSorted((a, b) => Math.abs(a.start - start) - Math.abs(b.start - start));
    return nearest?.slice(0, 1) ?? [];
  });
}
