/** What the sources say to people, found in their syntax: log lines, events, last lines. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';

/** One text of the sources. */
export interface SourceText {
  /** `src/csi/driver.ts:109`. */
  where: string;
  /** The pieces between the parts that vary; undefined where the text is not written there. */
  pieces: string[] | undefined;
  /** As it stands in the sources. */
  code: string;
}

export interface SourceTexts {
  /** Messages of `logger.info`, `.warn` and `.error`. */
  logLines: SourceText[];
  /** Reasons of events. */
  reasons: SourceText[];
  /** Texts of `failureExit`, `fatalExit` and `panicExit`. */
  lastLines: SourceText[];
}

const logMethods = new Set(['info', 'warn', 'error']);
const exits = new Set(['failureExit', 'fatalExit', 'panicExit']);
const src = path.join(import.meta.dirname, '../../src');

/** Reads all sources of the sidecar and the library. */
export function sourceTexts(): SourceTexts {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('/generated/'))
    .map((name) => parse(path.join(src, name)));
  const exported = files.flatMap((file) => stringConstants(file)).filter(({ isExported }) => isExported);
  const found: SourceTexts = { logLines: [], reasons: [], lastLines: [] };
  for (const file of files) {
    const constants = constantsOf(stringConstants(file), exported);
    const text = (node: ts.Expression): SourceText[] =>
      alternatives(node).flatMap((each) => textsOf(file, each, constants));
    visitCalls(file, (call) => {
      const { callee, object } = calleeOf(call, file);
      const { arguments: args } = call;
      if (callee === undefined) {
        if (/logger$/i.test(object) && args[1] !== undefined) found.logLines.push(...text(args[1]));
      } else if (logMethods.has(callee) && /logger$/i.test(object) && args[1] !== undefined) {
        found.logLines.push(...text(args[1]));
      } else if (callee === 'event' && /recorder\??$/i.test(object) && args[2] !== undefined) {
        found.reasons.push(...text(args[2]));
      } else if (exits.has(callee) && object === '' && args[0] !== undefined) {
        found.lastLines.push(...text(args[0]));
      }
    });
  }
  return found;
}

function parse(file: string): ts.SourceFile {
  return ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.ESNext, true);
}

function visitCalls(node: ts.Node, visit: (call: ts.CallExpression) => void): void {
  if (ts.isCallExpression(node)) visit(node);
  ts.forEachChild(node, (child) => visitCalls(child, visit));
}

/** `logger[level](...)` has an object and no callee. */
function calleeOf(
  { expression }: ts.CallExpression,
  file: ts.SourceFile,
): { callee: string | undefined; object: string } {
  if (ts.isPropertyAccessExpression(expression)) {
    return { callee: expression.name.text, object: expression.expression.getText(file) };
  }
  if (ts.isElementAccessExpression(expression)) {
    return { callee: undefined, object: expression.expression.getText(file) };
  }
  return { callee: expression.getText(file), object: '' };
}

interface StringConstant {
  name: string;
  text: string;
  isExported: boolean;
}

/** `const name = 'text'` at any level. */
function stringConstants(file: ts.SourceFile): StringConstant[] {
  const found: StringConstant[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer !== undefined) {
      const isExported = node.parent.parent.getText(file).startsWith('export ');
      if (ts.isStringLiteralLike(node.initializer)) {
        found.push({ name: node.name.text, text: node.initializer.text, isExported });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function alternatives(node: ts.Expression): ts.Expression[] {
  if (!ts.isConditionalExpression(node)) return [node];
  return [...alternatives(node.whenTrue), ...alternatives(node.whenFalse)];
}

type Constants = ReadonlyMap<string, readonly string[]>;

/** What a name may stand for in a file: its own constants hide those of other files. */
function constantsOf(own: StringConstant[], exported: StringConstant[]): Constants {
  const constants = new Map<string, string[]>(exported.map(({ name, text }) => [name, [text]]));
  for (const { name } of own) constants.set(name, []);
  for (const { name, text } of own) constants.get(name)?.push(text);
  return constants;
}

/** Several where a name stands for one of several constants. */
function textsOf(file: ts.SourceFile, node: ts.Expression, constants: Constants): SourceText[] {
  const line = file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
  const common = { where: `${path.relative(path.dirname(src), file.fileName)}:${line}`, code: node.getText(file) };
  const named = ts.isIdentifier(node) ? constants.get(node.text) : undefined;
  if (named !== undefined) return named.map((text) => ({ ...common, pieces: [text] }));
  return [{ ...common, pieces: piecesOf(node) }];
}

function piecesOf(node: ts.Expression): string[] | undefined {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isTemplateExpression(node)) return [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)];
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
    const left = piecesOf(node.left);
    const right = piecesOf(node.right);
    if (left === undefined || right === undefined) return undefined;
    return [...left.slice(0, -1), (left.at(-1) ?? '') + (right[0] ?? ''), ...right.slice(1)];
  }
  return undefined;
}
