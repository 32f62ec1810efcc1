import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

/** What ran of each source file: offsets, each even one the beginning of a piece, each odd one its end. */
export type Executed = Record<string, number[]>;

interface Script {
  url: string;
  functions: { ranges: { startOffset: number; endOffset: number; count: number }[] }[];
}

/**
 * Reads what V8 wrote for one test file and all processes that it started and that were not killed. Node.js strips types in
 * place, so offsets are those of the sources.
 */
export async function readCoverage(folder: string, copyFolder: string): Promise<Executed> {
  const prefix = pathToFileURL(`${copyFolder}/`).href;
  const painted = new Map<string, Uint8Array>();
  for (const name of await readdir(folder)) {
    for (const script of scriptsOf(await readFile(path.join(folder, name), 'utf8'))) {
      const file = script.url.slice(prefix.length);
      if (!script.url.startsWith(prefix) || !file.startsWith('src/')) continue;
      const own = paint(script);
      const all = painted.get(file);
      if (all === undefined) painted.set(file, own);
      else for (const [at, isExecuted] of own.entries()) if (isExecuted === 1) all[at] = 1;
    }
  }
  return Object.fromEntries(Array.from(painted, ([file, each]) => [file, pieces(each)]));
}

/** None where the process was killed while it wrote. */
function scriptsOf(text: string): Script[] {
  try {
    return (JSON.parse(text) as { result: Script[] }).result;
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

/** Functions come in the order of their beginnings, outer ones first, and so do the ranges in them: inner ones decide. */
function paint({ functions }: Script): Uint8Array {
  const length = Math.max(0, ...functions.flatMap(({ ranges }) => ranges.map(({ endOffset }) => endOffset)));
  const painted = new Uint8Array(length);
  for (const { ranges } of functions) {
    for (const { startOffset, endOffset, count } of ranges) painted.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  }
  return painted;
}

function pieces(painted: Uint8Array): number[] {
  const found: number[] = [];
  for (let at = 0; at <= painted.length; at++) if ((painted[at - 1] ?? 0) !== (painted[at] ?? 0)) found.push(at);
  return found;
}

/** Whether the code at an offset of a file ran. */
export function wasExecuted(executed: Executed, file: string, at: number): boolean {
  const edges = executed[file] ?? [];
  return edges.filter((edge) => edge <= at).length % 2 === 1;
}
