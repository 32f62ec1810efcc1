import type { Bench } from './bench.ts';
import type { Answer } from './csi-client.ts';

/** Removes whatever the checks have made. @returns what could not be removed, in words. */
export async function cleanUp(bench: Bench): Promise<string[]> {
  const { ledger } = bench;
  const failures: string[] = [];
  for (const pair of ledger.attached) {
    const [id, nodeId] = JSON.parse(pair) as [string, string];
    await bench.tryUnpublish(id, nodeId);
  }
  await findUncertain(bench);
  const remove = async (what: string, ids: readonly string[], call: (id: string) => Promise<Answer<object>>) => {
    for (const id of ids) {
      const answer = await call(id);
      if (answer.ok) continue;
      failures.push(`${what} ${id} is left behind: ${bench.described(answer)}`);
      if (answer.stalled || answer.code === 'UNAVAILABLE') return; // so will the others
    }
  };
  await remove('snapshot', [...ledger.snapshots], (id) => bench.tryDeleteSnapshot(id));
  await remove('volume', [...ledger.volumes].reverse(), (id) => bench.tryDelete(id));
  return failures;
}

/** A repeat finds what a call without an answer has made (CSI spec, "CreateVolume", `name`). One that fails again may stay. */
async function findUncertain(bench: Bench): Promise<void> {
  for (const request of bench.ledger.uncertain.values()) {
    const answer = await bench.tryCreate(request);
    if (!answer.ok && (answer.stalled || answer.code === 'UNAVAILABLE')) return;
  }
}
