import { answerChecks } from './answer-checks.ts';
import { changeChecks } from './change-checks.ts';
import type { Check } from './check.ts';
import { claimChecks } from './claim-checks.ts';
import { copyChecks } from './copy-checks.ts';
import { createChecks } from './create-checks.ts';
import { deleteChecks } from './delete-checks.ts';
import { faultChecks } from './fault-checks.ts';
import { identityChecks } from './identity-checks.ts';
import { leakChecks } from './leak-checks.ts';
import { lookupChecks } from './lookup-checks.ts';
import { nodeDeploymentChecks } from './node-deployment-checks.ts';
import { publishChecks } from './publish-checks.ts';

/** Every check, in the order in which they are made: what a check needs is before it. */
export const catalogue: readonly Check[] = ordered([
  ...identityChecks,
  ...createChecks,
  ...lookupChecks,
  ...publishChecks,
  ...deleteChecks,
  ...changeChecks,
  ...copyChecks,
  ...claimChecks,
  ...faultChecks,
  ...nodeDeploymentChecks,
  ...answerChecks,
  ...leakChecks,
]);

/** Moves a check behind those that it needs. */
function ordered(checks: readonly Check[]): Check[] {
  const placed = new Map<string, Check>();
  const place = (check: Check): void => {
    if (placed.has(check.id)) return;
    for (const id of check.needs ?? []) {
      const needed = checks.find((each) => each.id === id);
      if (needed !== undefined) place(needed);
    }
    placed.set(check.id, check);
  };
  for (const check of checks) place(check);
  return [...placed.values()];
}

/** The named checks with all that they need. @throws {RangeError} naming an id that is none. */
export function chosen(ids: readonly string[]): Check[] {
  if (ids.length === 0) return [...catalogue];
  const wanted = new Set<string>();
  const want = (id: string): void => {
    const check = catalogue.find((each) => each.id === id);
    if (check === undefined) throw new RangeError(`there is no check ${JSON.stringify(id)}; see --list`);
    wanted.add(id);
    check.needs?.forEach(want);
    if (check.part === 'answers') want('create'); // else there is no answer to judge
  };
  ids.forEach(want);
  return catalogue.filter(({ id }) => wanted.has(id));
}
