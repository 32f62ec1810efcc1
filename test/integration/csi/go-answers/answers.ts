/** Recorded answers of the Go sidecar: how they are read, and how ours are compared with them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { compareBytes } from '../../../../src/base/compare-bytes.ts';

/** One line of a file: an input, and what the Go sidecar made of it. */
export interface GoAnswer<Case, Result extends object> {
  case: Case;
  go: Result;
}

/** A way in which ours means to differ. Where all its fields match, the other fields decide. */
export interface Exception {
  reason: string;
  /** Names of files, without endings. */
  files: readonly string[];
  /** Default: all. */
  lines?: readonly number[];
  /** What Go's and ours look like, by field. */
  fields: Readonly<Record<string, { go: RegExp; ours: RegExp }>>;
}

/** What one file's replay came to. */
export interface Replay {
  lines: number;
  /** `file:line: field: ours ..., Go ...`, one for each line that differs. */
  differences: string[];
}

/** Fields that hold texts by freely chosen keys: an empty text in them is a value. */
const maps = new Set(['annotations', 'labels', 'parameters', 'params', 'volumeAttributes', 'mutable', 'secrets']);
/** Lists of such maps. */
const segmentLists = new Set(['requisite', 'preferred']);

/** All lines of a file. */
export function answersOf<Case, Result extends object>(file: string): GoAnswer<Case, Result>[] {
  const text = gunzipSync(readFileSync(join(import.meta.dirname, `${file}.jsonl.gz`))).toString();
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as GoAnswer<Case, Result>);
}

export interface ReplayOptions<Result extends object> {
  exceptions: readonly Exception[];
  /** Exceptions that were needed are added. */
  used: Set<Exception>;
  /** What of Go's answer counts. Default: all of it. */
  part?: (go: Result) => object;
}

/** Compares ours with Go's, line by line. */
export async function replay<Case, Result extends object>(
  file: string,
  ours: (given: Case, go: Result) => object | Promise<object>,
  { exceptions, used, part = (go) => go }: ReplayOptions<Result>,
): Promise<Replay> {
  const answers = answersOf<Case, Result>(file);
  const differences: string[] = [];
  for (const [index, { case: given, go }] of answers.entries()) {
    const line = index + 1;
    const applicable = exceptions.filter(({ files, lines }) => files.includes(file) && (lines?.includes(line) ?? true));
    const difference = await compared(() => ours(given, go), part(go), { applicable, used });
    if (difference !== undefined) differences.push(`${file}.jsonl.gz:${line}: ${difference}`);
  }
  return { lines: answers.length, differences };
}

async function compared(
  attempt: () => object | Promise<object>,
  go: object,
  { applicable, used }: { applicable: readonly Exception[]; used: Set<Exception> },
): Promise<string | undefined> {
  const [answer, expected] = [plain(await attempt()), plain(go)];
  const difference = firstDifference(answer, expected);
  if (difference === undefined) return undefined;
  const exception = applicable.find(({ fields }) =>
    Object.entries(fields).every(
      ([name, each]) => each.ours.test(textOf(answer[name])) && each.go.test(textOf(expected[name])),
    ),
  );
  if (exception === undefined) return difference;
  used.add(exception);
  const alike = Object.fromEntries(Object.keys(exception.fields).map((name) => [name, undefined]));
  return firstDifference({ ...answer, ...alike }, { ...expected, ...alike });
}

/** As JSON, without what Go leaves out: zero values, but in maps. */
function plain(value: object): Record<string, unknown> {
  return withoutZeros(JSON.parse(JSON.stringify(value))) as Record<string, unknown>;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? '');
}

function withoutZeros(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) {
    const list = value.map((each: unknown) => (segmentLists.has(name) ? each : withoutZeros(each)));
    // all of a term's expressions must hold: their order says nothing, and Go's differs from run to run
    return name === 'matchExpressions' ? list.sort((a, b) => compareBytes(JSON.stringify(a), JSON.stringify(b))) : list;
  }
  if (typeof value !== 'object' || value === null || maps.has(name)) return value;
  const kept = Object.entries(value).map(([key, each]) => [key, withoutZeros(each, key)] as const);
  return Object.fromEntries(kept.filter(([key, each]) => !isZero(key, each)));
}

function isZero(name: string, value: unknown): boolean {
  if (value === null || value === '' || value === 0 || value === false) return true;
  if (Array.isArray(value)) return value.length === 0;
  return (maps.has(name) || name === 'status') && isDeepStrictEqual(value, {});
}

/** The first field in which two answers differ, and both values; nothing when they are the same. */
export function firstDifference(ours: unknown, go: unknown, path = ''): string | undefined {
  if (isDeepStrictEqual(ours, go)) return undefined;
  if (!isObject(ours) || !isObject(go) || Array.isArray(ours) !== Array.isArray(go)) {
    return `${path}: ours ${shown(ours)}, Go ${shown(go)}`;
  }
  for (const key of new Set(['error', ...Object.keys(ours), ...Object.keys(go)])) {
    const difference = firstDifference(ours[key], go[key], path === '' ? key : `${path}.${key}`);
    if (difference !== undefined) return difference;
  }
  return `${path}: another order`;
}

function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > 400 ? `${text.slice(0, 400)}...` : text;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
