import { randomUUID } from 'node:crypto';
import type { Bench } from './bench.ts';
import type { Check, Findings } from './check.ts';
import { expectCode, expectOk, judgeUnknown } from './expected-code.ts';

const section = 'DeleteVolume';
const crowd = 5;

export const deleteChecks: readonly Check[] = [
  {
    id: 'delete',
    title: 'a volume is deleted',
    section,
    part: 'driver',
    needs: ['create'],
    async run(bench) {
      await bench.delete((await bench.create()).id);
    },
  },
  {
    id: 'delete-repeat',
    title: 'a volume that was deleted is deleted again with OK',
    section,
    part: 'driver',
    needs: ['create', 'delete'],
    async run(bench, findings) {
      const { id } = await bench.create();
      await bench.delete(id);
      expectOk(bench, findings, await bench.tryDelete(id), 'the second time');
    },
  },
  {
    id: 'delete-at-once',
    title: `${crowd} calls at once delete a volume, with OK or ABORTED`,
    section: 'Error Scheme',
    part: 'driver',
    needs: ['create', 'delete-repeat'],
    run: deleteAtOnce,
  },
  {
    id: 'delete-unknown',
    title: 'a volume that never existed is deleted with OK',
    section,
    part: 'driver',
    needs: ['create', 'delete-repeat'],
    async run(bench, findings) {
      judgeUnknown(bench, findings, await bench.tryDelete(randomUUID()));
    },
  },
  {
    id: 'delete-no-id',
    title: 'DeleteVolume without volume_id is refused',
    section: 'Error Scheme',
    part: 'driver',
    needs: ['create'],
    async run(bench, findings) {
      expectCode(findings, await bench.call('DeleteVolume'), ['INVALID_ARGUMENT'], 'without volume_id');
    },
  },
  {
    id: 'delete-in-use',
    title: 'a volume that is published to a node is not deleted',
    section: 'DeleteVolume Errors',
    part: 'driver',
    needs: ['create', 'publish'],
    run: deleteInUse,
  },
];

async function deleteAtOnce(bench: Bench, findings: Findings): Promise<void> {
  const { id } = await bench.create();
  const call = () => bench.call('DeleteVolume', { volume_id: id, secrets: bench.options.secrets });
  const answers = await Promise.all(Array.from({ length: crowd }, call));
  for (const answer of answers) {
    if (!answer.ok && answer.code !== 'ABORTED') {
      findings.fail(
        `a call is refused while another one for the volume is in progress, but not with ABORTED: ${bench.described(answer)}`,
      );
    }
  }
  expectOk(bench, findings, await bench.tryDelete(id), 'the call after them');
}

async function deleteInUse(bench: Bench, findings: Findings): Promise<void> {
  const { id, volume } = await bench.create();
  const { nodeId } = bench.facts;
  bench.ok(await bench.tryPublish(id, nodeId, volume));
  const answer = await bench.tryDelete(id);
  await bench.tryUnpublish(id, nodeId);
  expectCode(findings, answer, ['FAILED_PRECONDITION'], 'of a volume that is published to a node');
}
