import { readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import type { Random } from '../chaos/random.ts';

/** A condition that protects something, and how it is broken. */
export interface Guard {
  /** From the root, such as `src/csi/driver.ts`. */
  file: string;
  line: number;
  kind: 'if' | 'clause' | 'bound' | 'default';
  /** Offset of the code that the change affects: only a test that executes it can catch the change. */
  reachedAt: number;
  /** What is replaced. */
  start: number;
  end: number;
  replacement: string;
}

/** @returns all guards of a source file, several for one condition where it can be broken in several ways. */
export function findGuards(file: string, text: string): Guard[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ESNext, true);
  const found: Guard[] = [];
  const visit = (node: ts.Node): void => {
    if (isLogging(node)) return;
    for (const change of changesOf(node)) {
      const start = change.replaced.getStart(source);
      found.push({
        file,
        line: source.getLineAndCharacterOfPosition(start).line + 1,
        kind: change.kind,
        reachedAt: change.reached.getStart(source),
        start,
        end: change.replaced.getEnd(),
        replacement: change.by,
      });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** The source with that guard broken. */
export function broken(text: string, { start, end, replacement }: Guard): string {
  return text.slice(0, start) + replacement + text.slice(end);
}

interface Change {
  kind: Guard['kind'];
  replaced: { getStart(source: ts.SourceFile): number; getEnd(): number };
  by: string;
  reached: ts.Node;
}

function changesOf(node: ts.Node): Change[] {
  if (ts.isIfStatement(node)) {
    const { expression, thenStatement } = node;
    return leaves(thenStatement) ? [{ kind: 'if', replaced: expression, by: 'false', reached: thenStatement }] : [];
  }
  if (ts.isBinaryExpression(node)) return changesOfBinary(node);
  if ((ts.isBindingElement(node) || ts.isParameter(node)) && node.initializer !== undefined) {
    const { initializer } = node;
    const assignment = { getStart: () => endBefore(node), getEnd: () => initializer.getEnd() };
    return [{ kind: 'default', replaced: assignment, by: '', reached: node }];
  }
  return [];
}

/** The end of the name, or of the type, before `= value`. */
function endBefore(node: ts.BindingElement | ts.ParameterDeclaration): number {
  const type = ts.isParameter(node) ? node.type : undefined;
  return (type ?? node.name).getEnd();
}

const shifted = new Map<ts.SyntaxKind, string>([
  [ts.SyntaxKind.LessThanToken, '<='],
  [ts.SyntaxKind.LessThanEqualsToken, '<'],
  [ts.SyntaxKind.GreaterThanToken, '>='],
  [ts.SyntaxKind.GreaterThanEqualsToken, '>'],
]);

function changesOfBinary(node: ts.BinaryExpression): Change[] {
  const { left, right, operatorToken } = node;
  const bound = shifted.get(operatorToken.kind);
  if (bound !== undefined) return [{ kind: 'bound', replaced: operatorToken, by: bound, reached: node }];
  switch (operatorToken.kind) {
    case ts.SyntaxKind.QuestionQuestionToken:
      return [{ kind: 'default', replaced: node, by: left.getText(), reached: right }];
    case ts.SyntaxKind.AmpersandAmpersandToken:
    case ts.SyntaxKind.BarBarToken:
      return [
        { kind: 'clause', replaced: node, by: left.getText(), reached: right },
        { kind: 'clause', replaced: node, by: right.getText(), reached: left },
      ];
    default:
      return [];
  }
}

/** Whether nothing after the statement runs. */
function leaves(statement: ts.Statement): boolean {
  if (ts.isBlock(statement)) {
    const last = statement.statements.at(-1);
    return last !== undefined && leaves(last);
  }
  return (
    ts.isReturnStatement(statement) ||
    ts.isThrowStatement(statement) ||
    ts.isContinueStatement(statement) ||
    ts.isBreakStatement(statement)
  );
}

/** A log line, also with the condition under which it is written. */
function isLogging(node: ts.Node): boolean {
  if (ts.isIfStatement(node) && node.elseStatement === undefined) return logsOnly(node.thenStatement);
  if (!ts.isCallExpression(node)) return false;
  const { expression } = node;
  const isMethod = ts.isPropertyAccessExpression(expression) || ts.isElementAccessExpression(expression);
  return isMethod && /logger\??$/i.test(expression.expression.getText());
}

function logsOnly(statement: ts.Statement): boolean {
  if (ts.isBlock(statement)) return statement.statements.every(logsOnly);
  return ts.isExpressionStatement(statement) && isLogging(statement.expression);
}

/**
 * One guard of each folder after the other, in an order that the seed decides, until there are enough.
 *
 * @param isAccepted - called for as few guards as possible.
 */
export function chooseGuards(
  guards: readonly Guard[],
  { count, random, isAccepted }: { count: number; random: Random; isAccepted: (guard: Guard) => boolean },
): Guard[] {
  const folders = Map.groupBy(guards, ({ file }) => path.dirname(file));
  let queues = shuffle([...folders.keys()].toSorted(), random).map((folder) =>
    shuffle(folders.get(folder) ?? [], random.stream(folder)),
  );
  const chosen: Guard[] = [];
  while (queues.length > 0) {
    for (const queue of queues) {
      if (chosen.length >= count) return chosen;
      const guard = takeFirst(queue, isAccepted);
      if (guard !== undefined) chosen.push(guard);
    }
    queues = queues.filter((queue) => queue.length > 0);
  }
  return chosen;
}

function takeFirst(queue: Guard[], isAccepted: (guard: Guard) => boolean): Guard | undefined {
  for (let guard = queue.shift(); guard !== undefined; guard = queue.shift()) if (isAccepted(guard)) return guard;
  return undefined;
}

function shuffle<T>(list: readonly T[], random: Random): T[] {
  const left = [...list];
  return Array.from(list, () => left.splice(Math.floor(random.next() * left.length), 1)).flat();
}

/** @returns whether the compiler accepts another text of a source file, as far as that file itself is concerned. */
export function typeCheck(root: string): (file: string, text: string) => boolean {
  const config = ts.readConfigFile(path.join(root, 'tsconfig.json'), (name) => ts.sys.readFile(name));
  const { options, fileNames } = ts.parseJsonConfigFileContent(config.config, ts.sys, root);
  const changed = new Map<string, { text: string; version: number }>();
  const service = ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => fileNames.filter((name) => name.startsWith(path.join(root, 'src/'))),
    getScriptVersion: (name) => String(changed.get(name)?.version ?? 0),
    getScriptSnapshot: (name) => {
      if (!ts.sys.fileExists(name)) return undefined;
      return ts.ScriptSnapshot.fromString(changed.get(name)?.text ?? readFileSync(name, 'utf8'));
    },
    getCurrentDirectory: () => root,
    getDefaultLibFileName: (each) => ts.getDefaultLibFilePath(each),
    fileExists: (name) => ts.sys.fileExists(name),
    readFile: (name) => ts.sys.readFile(name),
    directoryExists: (name) => ts.sys.directoryExists(name),
  });
  let version = 0;
  return (file, text) => {
    const name = path.join(root, file);
    changed.set(name, { text, version: ++version });
    const found = service.getSemanticDiagnostics(name);
    changed.set(name, { text: readFileSync(name, 'utf8'), version: ++version });
    return !found.some(({ category }) => category === ts.DiagnosticCategory.Error);
  };
}
