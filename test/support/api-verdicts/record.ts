import { readFile, writeFile } from 'node:fs/promises';
import type { Verdict } from './api-under-comparison.ts';
import type { WriteCase } from './kinds.ts';

/** A write with what Kubernetes said of it. */
export type RecordedVerdict = WriteCase & Verdict;

const file = new URL('kubernetes-verdicts.json', import.meta.url);

/** What a real API server said of writes that the sandbox once judged differently. */
export async function readVerdicts(): Promise<RecordedVerdict[]> {
  return JSON.parse(await readFile(file, 'utf8')) as RecordedVerdict[];
}

/** Replaces the record: one write a line. */
export async function saveVerdicts(verdicts: readonly RecordedVerdict[]): Promise<void> {
  await writeFile(file, `[\n${verdicts.map((verdict) => JSON.stringify(verdict)).join(',\n')}\n]\n`);
}
