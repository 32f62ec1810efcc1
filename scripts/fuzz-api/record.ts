import type { ApiUnderComparison } from '../../test/support/api-verdicts/api-under-comparison.ts';
import type { WriteCase } from '../../test/support/api-verdicts/kinds.ts';
import { readVerdicts, type RecordedVerdict, saveVerdicts } from '../../test/support/api-verdicts/record.ts';
import { type Difference, fieldsApart } from './differences.ts';
import { intended } from './intended.ts';

const longestWrite = 2000;

/**
 * Asks Kubernetes anew about every write of the record, and about those of the differences that are short and have a
 * single field.
 *
 * @returns how many verdicts the record has now.
 */
export async function record(differences: readonly Difference[], kubernetes: ApiUnderComparison): Promise<number> {
  const added = differences.filter(isClear).map(({ write }) => write);
  const writes = new Map(
    [...(await readVerdicts()).map(writeOf), ...added].map((write) => [JSON.stringify(write), write]),
  );
  const verdicts: RecordedVerdict[] = [];
  for (const write of writes.values()) verdicts.push({ ...write, ...(await kubernetes.judge(write)) });
  await saveVerdicts(verdicts);
  return verdicts.length;
}

function isClear(difference: Difference): boolean {
  const isShort = JSON.stringify(difference.write).length <= longestWrite;
  return isShort && !fieldsApart(difference).includes(', ') && !intended.some(({ fits }) => fits(difference));
}

function writeOf({ kind, replaces, strict, object }: RecordedVerdict): WriteCase {
  return { kind, ...(replaces === undefined ? {} : { replaces }), ...(strict === undefined ? {} : { strict }), object };
}
