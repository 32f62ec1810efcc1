/** What the sources say to people, found in their syntax: log lines, events, last lines. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { piecesOf } from './text-templates.ts';

/** One text of the sources. */
export interface SourceText {
  /** Of a log line; undefined where that is decided when it runs, and of other texts. */
  level?: 'info' | 'warn' | 'error';
  /** `src/csi/driver.ts:109`. */
  where: string;
  /** The pieces between the parts that vary; undefined where the text is not written there. */
  pieces: string[] | undefined;
  /** As it stands in the sources. */
  code: string;
}

/** Without the NFS provisioners, unless it says otherwise. */
export interface SourceTexts {
  /** Messages of `logger.info`, `.warn` and `.error`. */
  logLines: SourceText[];
  /** Reasons of events. */
  reasons: SourceText[];
  /** Texts of events, as far as they are written in the function that records them. */
  messages: SourceText[];
  /** Texts of `failureExit`, `fatalExit` and `panicExit`. */
  lastLines: SourceText[];
  /** Log lines of the NFS provisioners, and the reasons of their events. */
  nfsLogLines: SourceText[];
  nfsReasons: SourceText[];
  /** Every text, also those of the NFS provisioners, in pieces between the parts that vary; `src/explain` reads those of others. */
  templates: string[][];
  /** Every text without a part that varies, and every name, also those of the NFS provisioners. */
  words: { texts: Set<string>; names: Set<string> };
}

const logMethods = new Set(['info', 'warn', 'error']);
const exits = new Set(['failureExit', 'fatalExit', 'panicExit']);
const root = path.join(import.meta.dirname, '../..');

/** Reads all sources of the sidecar, the library and the NFS provisioners. */
export function sourceTexts(): SourceTexts {
  const src = sourcesOf('src');
  const provisioners = [...sourcesOf('provisioners/nfs-server'), ...sourcesOf('provisioners/nfs-subdir')];
  const { logLines: nfsLogLines, reasons: nfsReasons } = textsSaid(provisioners);
  return {
    ...textsSaid(src),
    nfsLogLines,
    nfsReasons,
    templates: templatesOf([...src, ...provisioners].filter(({ fileName }) => !fileName.includes('/src/explain/'))),
    words: wordsOf([...src, ...provisioners]),
  };
}

function sourcesOf(folder: string): ts.SourceFile[] {
  return readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /(?<!\.test)\.ts$/.test(name) && !name.includes('/generated/'))
    .map((name) => parse(path.join(root, folder, name)));
}

function textsSaid(
  files: readonly ts.SourceFile[],
): Omit<SourceTexts, 'nfsLogLines' | 'nfsReasons' | 'templates' | 'words'> {
  const exported = files.flatMap((file) => stringConstants(file)).filter(({ isExported }) => isExported);
  const found = { logLines: [], reasons: [], messages: [], lastLines: [] } as ReturnType<typeof textsSaid>;
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
        const declared = initializersOf(args[1]).flatMap(text);
        const lines = declared.every(({ pieces }) => pieces !== undefined) ? declared : text(args[1]);
        found.logLines.push(...lines.map((each) => ({ ...each, level: callee as 'info' | 'warn' | 'error' })));
      } else if (callee === 'event' && /recorder\??$/i.test(object) && args[2] !== undefined) {
        found.reasons.push(...text(args[2]));
        found.messages.push(...(args[3] === undefined ? [] : initializersOf(args[3]).flatMap(text)));
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

function visitNodes(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  ts.forEachChild(node, (child) => visitNodes(child, visit));
}

function visitCalls(node: ts.Node, visit: (call: ts.CallExpression) => void): void {
  visitNodes(node, (each) => {
    if (ts.isCallExpression(each)) visit(each);
  });
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

/** What a name was declared as in the function around it; anything else is itself. */
function initializersOf(node: ts.Expression): ts.Expression[] {
  if (!ts.isIdentifier(node)) return [node];
  for (let scope: ts.Node = node.parent; !ts.isSourceFile(scope); scope = scope.parent) {
    const found: ts.Expression[] = [];
    visitNodes(scope, (each) => {
      if (ts.isVariableDeclaration(each) && each.name.getText() === node.text && each.initializer !== undefined)
        found.push(each.initializer);
    });
    if (found.length > 0) return found;
  }
  return [node];
}

function templatesOf(files: readonly ts.SourceFile[]): string[][] {
  const exported = files.flatMap((file) => stringConstants(file)).filter(({ isExported }) => isExported);
  return files.flatMap((file) => {
    const resolve = constantIn(constantsOf(stringConstants(file), exported));
    const found: string[][] = [];
    visitNodes(file, (node) => {
      const pieces = ts.isIdentifier(node) ? undefined : piecesOf(node, resolve);
      if (pieces !== undefined) found.push(pieces);
    });
    return found;
  });
}

function wordsOf(files: readonly ts.SourceFile[]): SourceTexts['words'] {
  const words = { texts: new Set<string>(), names: new Set<string>() };
  for (const file of files) {
    visitNodes(file, (node) => {
      if (ts.isIdentifier(node)) words.names.add(node.text);
      else if (ts.isStringLiteralLike(node)) words.texts.add(node.text);
    });
  }
  return words;
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

/** A name that stands for one constant alone. */
function constantIn(constants: Constants): (name: string) => string | undefined {
  return (name) => {
    const texts = constants.get(name);
    return texts?.length === 1 ? texts[0] : undefined;
  };
}

/** Several where a name stands for one of several constants. */
function textsOf(file: ts.SourceFile, node: ts.Expression, constants: Constants): SourceText[] {
  const line = file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
  const common = { where: `${path.relative(root, file.fileName)}:${line}`, code: node.getText(file) };
  const named = ts.isIdentifier(node) ? constants.get(node.text) : undefined;
  if (named !== undefined) return named.map((text) => ({ ...common, pieces: [text] }));
  return [{ ...common, pieces: piecesOf(node, constantIn(constants)) }];
}
