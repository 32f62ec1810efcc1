/** The thread of `ModelThread`: runs each check that it is sent, and sends back what was found. */
import { parentPort } from 'node:worker_threads';
import fc from 'fast-check';
import { brokenCases } from './broken-guards.ts';
import type { ModelCheck, ModelResult } from './model-thread.ts';
import { runModel } from './run-model.ts';

async function run(check: ModelCheck) {
  if ('focus' in check) return await runModel(check);
  const { without, isBroken, ...parameters } = check;
  const found = brokenCases.find((each) => each.without === without);
  if (found === undefined) throw new Error(`there is no case without ${without}`);
  return await runModel({
    ...parameters,
    broken: isBroken ? found.broken : {},
    focus: found.commands,
    endOnFailure: true,
    elections: found.election === undefined ? fc.boolean() : fc.constant(found.election),
  });
}

async function answer(check: ModelCheck): Promise<void> {
  const details = await run(check);
  const result: ModelResult = {
    failed: details.failed,
    numRuns: details.numRuns,
    error: String(details.errorInstance),
    report: details.failed ? await fc.asyncDefaultReportMessage(details) : undefined,
  };
  parentPort?.postMessage(result);
}

parentPort?.on('message', (check: ModelCheck) => void answer(check)); // a rejection ends the thread
