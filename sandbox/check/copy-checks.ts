/** Clones, snapshots, and volumes made of them. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Bench } from './bench.ts';
import type { Check, Findings } from './check.ts';
import type { ContentSource } from './csi-messages.ts';
import { expectCode, expectOk, judgeUnknown } from './expected-code.ts';

export const copyChecks: readonly Check[] = [
  {
    id: 'clone',
    title: 'a volume is cloned from another one, and has it as content_source',
    section: 'CreateVolume, content_source',
    part: 'driver',
    needs: ['create'],
    async run(bench, findings) {
      bench.needController('CLONE_VOLUME');
      const { id } = await bench.create();
      await makeOf(bench, findings, { volume: { volume_id: id } });
    },
  },
  {
    id: 'clone-unknown',
    title: 'a source volume that does not exist is NOT_FOUND',
    section: 'CreateVolume Errors',
    part: 'driver',
    needs: ['clone'],
    async run(bench, findings) {
      const source = { volume: { volume_id: await deletedVolume(bench) } };
      const answer = await bench.tryCreate(bench.request({ volume_content_source: source }));
      expectCode(findings, answer, ['NOT_FOUND'], 'from a volume that was deleted');
    },
  },
  {
    id: 'snapshot',
    title: 'a snapshot of a volume is created',
    section: 'CreateSnapshot',
    part: 'driver',
    needs: ['create'],
    run: snapshot,
  },
  {
    id: 'snapshot-repeat',
    title: 'the same request again returns the same snapshot',
    section: 'CreateSnapshot',
    part: 'driver',
    needs: ['snapshot'],
    async run(bench, findings) {
      const volume = await bench.create();
      const made = await bench.snapshot(volume.id);
      const again = await bench.snapshot(volume.id, made.name);
      for (const field of ['snapshot_id', 'creation_time', 'source_volume_id'] as const) {
        if (isDeepStrictEqual(made.snapshot[field], again.snapshot[field])) continue;
        findings.fail(
          `the repeated CreateSnapshot returned another ${field}: ${JSON.stringify(again.snapshot[field])}`,
        );
      }
    },
  },
  {
    id: 'snapshot-other-source',
    title: 'a snapshot name that is in use is refused for another volume',
    section: 'CreateSnapshot Errors',
    part: 'driver',
    needs: ['snapshot', 'snapshot-repeat'],
    async run(bench, findings) {
      const { name } = await bench.snapshot((await bench.create()).id);
      const answer = await bench.trySnapshot(name, (await bench.create()).id);
      expectCode(findings, answer, ['ALREADY_EXISTS'], 'for a name that another volume has');
    },
  },
  {
    id: 'snapshot-list',
    title: 'ListSnapshots finds a snapshot by id, and nothing by an unknown id',
    section: 'ListSnapshots',
    part: 'driver',
    needs: ['snapshot'],
    run: listSnapshots,
  },
  {
    id: 'get-snapshot',
    title: 'GetSnapshot finds a snapshot, and not one that was deleted',
    section: 'GetSnapshot',
    part: 'driver',
    needs: ['snapshot', 'snapshot-delete'],
    async run(bench, findings) {
      bench.needController('GET_SNAPSHOT');
      const { id } = await bench.snapshot((await bench.create()).id);
      const found = bench.ok(await bench.call('GetSnapshot', { snapshot_id: id })).snapshot?.snapshot_id;
      if (found !== id) findings.fail(`GetSnapshot of ${id} returned ${JSON.stringify(found ?? '')}`);
      bench.ok(await bench.tryDeleteSnapshot(id));
      expectCode(
        findings,
        await bench.call('GetSnapshot', { snapshot_id: id }),
        ['NOT_FOUND'],
        'of a snapshot that was deleted',
      );
    },
  },
  {
    id: 'restore',
    title: 'a volume is restored from a snapshot, and has it as content_source',
    section: 'CreateVolume, content_source',
    part: 'driver',
    needs: ['snapshot'],
    async run(bench, findings) {
      const { id } = await bench.snapshot((await bench.create()).id);
      await makeOf(bench, findings, { snapshot: { snapshot_id: id } });
    },
  },
  {
    id: 'restore-unknown',
    title: 'a source snapshot that does not exist is NOT_FOUND',
    section: 'CreateVolume Errors',
    part: 'driver',
    needs: ['restore', 'snapshot-delete'],
    async run(bench, findings) {
      const { id } = await bench.snapshot((await bench.create()).id);
      bench.ok(await bench.tryDeleteSnapshot(id));
      const answer = await bench.tryCreate(bench.request({ volume_content_source: { snapshot: { snapshot_id: id } } }));
      expectCode(findings, answer, ['NOT_FOUND'], 'from a snapshot that was deleted');
    },
  },
  {
    id: 'snapshot-delete',
    title: 'a snapshot is deleted, and again with OK',
    section: 'DeleteSnapshot',
    part: 'driver',
    needs: ['snapshot'],
    async run(bench, findings) {
      const { id } = await bench.snapshot((await bench.create()).id);
      bench.ok(await bench.tryDeleteSnapshot(id));
      expectOk(bench, findings, await bench.tryDeleteSnapshot(id), 'the second time');
      judgeUnknown(bench, findings, await bench.tryDeleteSnapshot(randomUUID()));
    },
  },
  {
    id: 'snapshot-unknown',
    title: 'a snapshot of a volume that does not exist is refused',
    section: 'Error Scheme',
    part: 'driver',
    needs: ['snapshot'],
    async run(bench, findings) {
      const answer = await bench.trySnapshot(`snapshot-${randomUUID()}`, await deletedVolume(bench));
      if (answer.ok) findings.fail('CreateSnapshot of a volume that was deleted returned OK');
      else if (answer.code !== 'NOT_FOUND') findings.warn(`NOT_FOUND is usual: ${bench.described(answer)}`);
    },
  },
];

async function deletedVolume(bench: Bench): Promise<string> {
  const { id } = await bench.create();
  await bench.delete(id);
  return id;
}

async function makeOf(bench: Bench, findings: Findings, source: ContentSource): Promise<void> {
  const { volume } = await bench.create({ volume_content_source: source });
  if (isDeepStrictEqual(volume.content_source ?? null, source)) return;
  const got = JSON.stringify(volume.content_source ?? null);
  findings.fail(`content_source is ${got}, expected ${JSON.stringify(source)}: the provisioner deletes such a volume`);
}

async function snapshot(bench: Bench, findings: Findings): Promise<void> {
  bench.needController('CREATE_DELETE_SNAPSHOT');
  const volume = await bench.create();
  const { snapshot } = await bench.snapshot(volume.id);
  if (snapshot.source_volume_id !== volume.id) {
    findings.fail(
      `source_volume_id is ${JSON.stringify(snapshot.source_volume_id ?? '')}, expected ${JSON.stringify(volume.id)}`,
    );
  }
  if (snapshot.creation_time === undefined) findings.fail('creation_time is missing, but the field is REQUIRED');
  if (BigInt(snapshot.size_bytes ?? '0') < 0n) findings.fail('size_bytes is negative');
}

async function listSnapshots(bench: Bench, findings: Findings): Promise<void> {
  bench.needController('LIST_SNAPSHOTS');
  const { id } = await bench.snapshot((await bench.create()).id);
  const { secrets } = bench.options;
  const one = bench.ok(await bench.call('ListSnapshots', { snapshot_id: id, secrets }));
  const ids = (one.entries ?? []).map((entry) => entry.snapshot?.snapshot_id ?? '');
  if (!isDeepStrictEqual(ids, [id]))
    findings.fail(`ListSnapshots with snapshot_id ${id} returned ${JSON.stringify(ids)}`);
  const none = await bench.call('ListSnapshots', { snapshot_id: randomUUID(), secrets });
  if (!none.ok)
    findings.fail(`ListSnapshots with an unknown snapshot_id must return an empty list: ${bench.described(none)}`);
  else if ((none.response.entries ?? []).length > 0)
    findings.fail('ListSnapshots with an unknown snapshot_id returned a list that is not empty');
}
