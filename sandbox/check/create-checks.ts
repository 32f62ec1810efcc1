import { isDeepStrictEqual } from 'node:util';
import { type Bench, idOf } from './bench.ts';
import type { Check, Findings } from './check.ts';
import type { Answer } from './csi-client.ts';
import type { Responses, Volume } from './csi-messages.ts';
import { expectCode } from './expected-code.ts';
import { maxStringBytes } from './size-limits.ts';
import { covers } from './topology-rules.ts';
import { CheckSkipped } from './outcome.ts';

const section = 'CreateVolume';
const errors = 'CreateVolume Errors';
/** How many calls come at once. */
const crowd = 5;

export const createChecks: readonly Check[] = [
  {
    id: 'create',
    title: 'a volume is created',
    section,
    part: 'driver',
    needs: ['controller-capabilities'],
    async run(bench) {
      bench.needController('CREATE_DELETE_VOLUME');
      bench.ok(await bench.tryCreate(bench.request()));
    },
  },
  {
    id: 'create-repeat',
    title: 'the same request again returns the same volume',
    section,
    part: 'driver',
    needs: ['create'],
    async run(bench, findings) {
      const { request, volume } = await bench.create();
      const { volume: again = {} } = bench.ok(await bench.tryCreate(request));
      for (const text of changes(volume, again)) findings.fail(`the repeated CreateVolume returned another ${text}`);
    },
  },
  {
    id: 'create-at-once',
    title: `${crowd} calls at once with one name create one volume`,
    section,
    part: 'driver',
    needs: ['create', 'create-repeat'],
    run: createAtOnce,
  },
  {
    id: 'create-other-size',
    title: 'a name that is in use is refused with another size',
    section: errors,
    part: 'driver',
    needs: ['create', 'create-repeat'],
    run: createOtherSize,
  },
  {
    id: 'create-no-name',
    title: 'CreateVolume without a name is refused',
    section: 'Error Scheme',
    part: 'driver',
    needs: ['create'],
    async run(bench, findings) {
      expectCode(findings, await bench.createOnce(bench.request({ name: '' })), ['INVALID_ARGUMENT'], 'without a name');
    },
  },
  {
    id: 'create-no-capabilities',
    title: 'CreateVolume without volume_capabilities is refused',
    section: 'Error Scheme',
    part: 'driver',
    needs: ['create'],
    async run(bench, findings) {
      const answer = await bench.createOnce(bench.request({ volume_capabilities: [] }));
      expectCode(findings, answer, ['INVALID_ARGUMENT'], 'without volume_capabilities');
    },
  },
  {
    id: 'create-exact-size',
    title: 'a size with a limit is kept, or refused as OUT_OF_RANGE',
    section: errors,
    part: 'driver',
    needs: ['create'],
    async run(bench, findings) {
      const bytes = String(bench.options.sizeBytes + 1n);
      const answer = await bench.tryCreate(
        bench.request({ capacity_range: { required_bytes: bytes, limit_bytes: bytes } }),
      );
      if (!answer.ok) expectCode(findings, answer, ['OUT_OF_RANGE'], `with required_bytes and limit_bytes ${bytes}`);
    },
  },
  {
    id: 'create-long-name',
    title: 'a name of 128 bytes is accepted',
    section: 'Size Limits',
    part: 'driver',
    needs: ['create'],
    async run(bench, findings) {
      const request = bench.request();
      const answer = await bench.tryCreate({ ...request, name: request.name.padEnd(128, 'x') });
      const { volume_id: id = '' } = (answer.ok ? answer.response.volume : undefined) ?? {};
      const bytes = Buffer.byteLength(id);
      if (!answer.ok) findings.warn(`a name of 128 bytes is refused: ${bench.described(answer)}`);
      if (bytes > maxStringBytes)
        findings.warn(`with a name of 128 bytes, volume_id has ${bytes}; at most 128 are allowed`);
    },
  },
  {
    id: 'create-topology',
    title: 'a volume is created where it was requested, for each known segment',
    section: 'CreateVolume, TopologyRequirement',
    part: 'driver',
    needs: ['create', 'node-info'],
    run: createInSegments,
  },
  {
    id: 'create-elsewhere',
    title: 'a segment that no node has is refused',
    section: errors,
    part: 'driver',
    needs: ['create', 'node-info'],
    run: createElsewhere,
  },
  {
    id: 'create-block',
    title: 'a block volume is created, or refused as INVALID_ARGUMENT',
    section,
    part: 'driver',
    needs: ['create'],
    run: (bench, findings) => createAs(bench, findings, { block: true }, 'block volumes'),
  },
  {
    id: 'create-shared',
    title: 'a volume for many nodes is created, or refused as INVALID_ARGUMENT',
    section,
    part: 'driver',
    needs: ['create'],
    run: (bench, findings) => createAs(bench, findings, { mode: 'MULTI_NODE_MULTI_WRITER' }, 'MULTI_NODE_MULTI_WRITER'),
  },
  {
    id: 'create-single-writer',
    title: 'a driver with SINGLE_NODE_MULTI_WRITER accepts the access modes of old and new clusters',
    section: 'ControllerGetCapabilities',
    part: 'driver',
    needs: ['create'],
    async run(bench, findings) {
      bench.needController('SINGLE_NODE_MULTI_WRITER');
      await createAs(bench, findings, { mode: 'SINGLE_NODE_SINGLE_WRITER' }, 'SINGLE_NODE_SINGLE_WRITER');
      const old = await bench.tryCreate(
        bench.request({ volume_capabilities: [bench.capability({ mode: 'SINGLE_NODE_WRITER' })] }),
      );
      if (!old.ok) findings.fail(`SINGLE_NODE_WRITER is refused, which older clusters send: ${bench.described(old)}`);
    },
  },
  {
    id: 'create-after-delete',
    title: 'a name is free again once its volume is deleted',
    section,
    part: 'driver',
    needs: ['create', 'delete', 'validate-unknown'],
    run: createAfterDelete,
  },
];

/** Fields in which a repeated answer differs. */
function changes(first: Volume, again: Volume): string[] {
  const fields = ['volume_id', 'volume_context', 'capacity_bytes', 'accessible_topology', 'content_source'] as const;
  return fields
    .filter((field) => !isDeepStrictEqual(first[field] ?? null, again[field] ?? null))
    .map(
      (field) => `${field}: ${JSON.stringify(again[field] ?? null)} instead of ${JSON.stringify(first[field] ?? null)}`,
    );
}

async function createAtOnce(bench: Bench, findings: Findings): Promise<void> {
  const request = bench.request();
  const answers = await Promise.all(Array.from({ length: crowd }, () => bench.createOnce(request)));
  const last = await bench.tryCreate(request);
  const ids = new Set([...answers, last].flatMap(volumeIds));
  for (const text of new Set(
    answers.filter((answer) => !answer.ok && answer.code !== 'ABORTED').map((answer) => bench.described(answer)),
  )) {
    findings.fail(
      `a call is refused while another one for the name is in progress, but not with ABORTED: ${text}`,
      'Error Scheme',
    );
  }
  if (!last.ok) findings.fail(`the call after them: ${bench.described(last)}`);
  if (ids.size > 1) findings.fail(`one name gave ${ids.size} volumes: ${[...ids].join(', ')}`);
}

function volumeIds(answer: Answer<Responses['CreateVolume']>): string[] {
  return answer.ok ? [answer.response.volume?.volume_id ?? ''] : [];
}

async function createOtherSize(bench: Bench, findings: Findings): Promise<void> {
  const { request, volume } = await bench.create();
  const bytes = BigInt(volume.capacity_bytes ?? '0');
  const larger = String((bytes > bench.options.sizeBytes ? bytes : bench.options.sizeBytes) * 2n);
  const answer = await bench.tryCreate({ ...request, capacity_range: { required_bytes: larger } });
  if (answer.ok && bytes === 0n) {
    findings.warn('another size for the name is OK; the driver returns no capacity_bytes, so it may not know the size');
    return;
  }
  expectCode(
    findings,
    answer,
    ['ALREADY_EXISTS'],
    `for the name of a volume of ${bytes} bytes, with required_bytes ${larger}`,
  );
}

async function createInSegments(bench: Bench, findings: Findings): Promise<void> {
  const all = needTopology(bench);
  for (const segments of all) {
    const accessibility = { requisite: [{ segments }], preferred: [{ segments }] };
    const answer = await bench.tryCreate(bench.request({ accessibility_requirements: accessibility }));
    if (!answer.ok) {
      findings.fail(`no volume was created in ${JSON.stringify(segments)}: ${bench.described(answer)}`);
      continue;
    }
    const places = (answer.response.volume?.accessible_topology ?? []).map((each) => each.segments ?? {});
    if (places.length > 0 && !places.some((place) => covers(place, segments))) {
      findings.fail(`${JSON.stringify(segments)} was requested, but the volume is in ${JSON.stringify(places)}`);
    }
  }
}

async function createElsewhere(bench: Bench, findings: Findings): Promise<void> {
  const [known = {}] = needTopology(bench);
  const segments = Object.fromEntries(Object.keys(known).map((key) => [key, 'csi-sandbox-nowhere']));
  const accessibility = { requisite: [{ segments }], preferred: [{ segments }] };
  const answer = await bench.tryCreate(bench.request({ accessibility_requirements: accessibility }));
  const what = `in ${JSON.stringify(segments)}, where there is no node`;
  if (!answer.ok && answer.code === 'INVALID_ARGUMENT') return;
  expectCode(findings, answer, ['RESOURCE_EXHAUSTED'], what);
}

function needTopology(bench: Bench): readonly Record<string, string>[] {
  if (!bench.topology) throw new CheckSkipped('the driver has no VOLUME_ACCESSIBILITY_CONSTRAINTS');
  if (bench.knownSegments.length > 0) return bench.knownSegments;
  throw new CheckSkipped(
    'no topology segments are known: there is no node service at this socket; give nodes with --node',
  );
}

async function createAs(
  bench: Bench,
  findings: Findings,
  use: { mode?: string; block?: boolean },
  what: string,
): Promise<void> {
  const answer = await bench.tryCreate(bench.request({ volume_capabilities: [bench.capability(use)] }));
  if (answer.ok) return;
  expectCode(findings, answer, ['INVALID_ARGUMENT'], `of ${what}`);
  if (answer.code === 'INVALID_ARGUMENT') throw new CheckSkipped(`the driver refuses ${what}: ${answer.message}`);
}

async function createAfterDelete(bench: Bench, findings: Findings): Promise<void> {
  const { id, request } = await bench.create();
  await bench.delete(id);
  const { volume = {} } = bench.ok(await bench.tryCreate(request));
  const again = idOf(volume);
  const found = await bench.call('ValidateVolumeCapabilities', {
    volume_id: again,
    volume_capabilities: request.volume_capabilities,
    volume_context: volume.volume_context ?? {},
    secrets: bench.options.secrets,
  });
  if (!found.ok && found.code === 'NOT_FOUND') {
    findings.fail(
      `after a deletion, CreateVolume returned ${again}, but no such volume exists: ${bench.described(found)}`,
    );
  }
}
