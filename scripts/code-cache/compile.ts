/**
 * Writes the compiled code of a bundle: its functions that are listed in ahead.txt, none of which runs. Two processes write the
 * same bytes, if V8 is started with `compilerFlags`.
 *
 *   node FLAGS scripts/code-cache/compile.ts FILE
 */
import { readFile, writeFile } from 'node:fs/promises';
import { Session } from 'node:inspector/promises';
import path from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { BundledProgram, compiledCodeFile } from '../../src/base/bundled-program.ts';
import { bundleFunctions } from './bundle-functions.ts';
import { functionList } from './function-list.ts';

const [file = ''] = process.argv.slice(2);
const program = new BundledProgram(file);
program.define();
const session = new Session();
session.connect();
const scripts = new Map<string, string>();
session.on('Debugger.scriptParsed', ({ params }) => scripts.set(path.basename(params.url), params.scriptId));
await session.post('Debugger.enable');
const scriptId = scripts.get(path.basename(file)) ?? '';
const listed = await functionList();
const lines = lineStarts(await readFile(file, 'latin1'));
for (const { body, name } of await bundleFunctions(file)) {
  if (!listed.has(name)) continue;
  // to look for the places where it can stop, V8's inspector compiles the function
  const [start, end] = [body, body + 1].map((position) => ({ scriptId, ...lineAndColumn(position) }));
  await session.post('Debugger.getPossibleBreakpoints', { start, end, restrictToFunction: true });
}
await session.post('Debugger.disable');
setFlagsFromString('--hash-seed=0'); // the default: V8 refuses code of a process with other flags
await writeFile(compiledCodeFile(file), program.compiledCode());

function lineStarts(text: string): number[] {
  return [0, ...Array.from(text.matchAll(/\n/g), ({ index }) => index + 1)];
}

function lineAndColumn(position: number): { lineNumber: number; columnNumber: number } {
  const lineNumber = lines.findLastIndex((start) => start <= position);
  return { lineNumber, columnNumber: position - (lines[lineNumber] ?? 0) };
}
