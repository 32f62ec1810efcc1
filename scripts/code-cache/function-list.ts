/** ahead.txt: the functions that are compiled ahead, by the file that they come from. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

const list = path.join(import.meta.dirname, 'ahead.txt');

/** @returns names as `bundleFunctions` gives them. */
export async function functionList(): Promise<Set<string>> {
  const names = new Set<string>();
  let source = '';
  for (const line of (await readFile(list, 'utf8')).trimEnd().split('\n')) {
    if (line.startsWith(' ')) names.add(`${source} ${line.trim()}`);
    else names.add((source = line));
  }
  return names;
}

export async function writeFunctionList(names: Iterable<string>): Promise<void> {
  const split = [...new Set(names)].toSorted().map((name) => /^(\S*)(?: (.*))?$/.exec(name) ?? []);
  const bySource = Map.groupBy(split, ([, source = '']) => source);
  const lines = [...bySource].flatMap(([source, found]) => [
    source,
    ...found.flatMap(([, , name]) => (name === undefined ? [] : [`  ${name}`])),
  ]);
  await writeFile(list, `${lines.join('\n')}\n`);
}
