/** Expansion, modification, and capacity. */
import { randomUUID } from 'node:crypto';
import type { Bench } from './bench.ts';
import type { Check, Findings } from './check.ts';
import type { Answer } from './csi-client.ts';
import type { Responses, StringMap, VolumeCapability } from './csi-messages.ts';
import { expectCode, expectOk } from './expected-code.ts';
import { CheckSkipped } from './outcome.ts';

export const changeChecks: readonly Check[] = [
  {
    id: 'expand',
    title: 'a volume grows to the required size, and again with OK',
    section: 'ControllerExpandVolume',
    part: 'driver',
    needs: ['create'],
    run: expand,
  },
  {
    id: 'expand-unknown',
    title: 'ControllerExpandVolume of a volume that does not exist is NOT_FOUND',
    section: 'ControllerExpandVolume Errors',
    part: 'driver',
    needs: ['create', 'delete'],
    async run(bench, findings) {
      bench.needController('EXPAND_VOLUME');
      const { id, request } = await bench.create();
      await bench.delete(id);
      const answer = await tryExpand(bench, id, bench.options.sizeBytes * 2n, request.volume_capabilities[0]);
      expectCode(findings, answer, ['NOT_FOUND'], 'of a volume that was deleted');
    },
  },
  {
    id: 'modify',
    title: 'mutable parameters are accepted, and again with OK',
    section: 'ControllerModifyVolume',
    part: 'driver',
    needs: ['create'],
    async run(bench, findings) {
      bench.needController('MODIFY_VOLUME');
      const { mutableParameters } = bench.options;
      if (Object.keys(mutableParameters).length === 0)
        throw new CheckSkipped('no mutable parameters are given; see --mutable-parameter');
      const { id } = await bench.create();
      expectOk(bench, findings, await tryModify(bench, id, mutableParameters), 'once');
      expectOk(bench, findings, await tryModify(bench, id, mutableParameters), 'the second time');
    },
  },
  {
    id: 'modify-unknown-key',
    title: 'a mutable parameter that the driver does not know is INVALID_ARGUMENT',
    section: 'ControllerModifyVolume Errors',
    part: 'driver',
    needs: ['create'],
    async run(bench, findings) {
      bench.needController('MODIFY_VOLUME');
      const { id } = await bench.create();
      const answer = await tryModify(bench, id, { 'csi-sandbox-no-parameter': 'x' });
      if (answer.ok) findings.warn('ControllerModifyVolume with an unknown key returned OK, expected INVALID_ARGUMENT');
      else expectCode(findings, answer, ['INVALID_ARGUMENT'], 'with an unknown key');
    },
  },
  {
    id: 'modify-unknown',
    title: 'ControllerModifyVolume of a volume that does not exist is NOT_FOUND',
    section: 'ControllerModifyVolume Errors',
    part: 'driver',
    needs: ['create'],
    async run(bench, findings) {
      bench.needController('MODIFY_VOLUME');
      const answer = await tryModify(bench, randomUUID(), bench.options.mutableParameters);
      expectCode(findings, answer, ['NOT_FOUND'], 'of a volume that does not exist');
    },
  },
  {
    id: 'capacity',
    title: 'GetCapacity is not negative, and not too small where a volume can be created',
    section: 'GetCapacity',
    part: 'driver',
    needs: ['create'],
    run: capacity,
  },
];

async function tryExpand(
  bench: Bench,
  id: string,
  bytes: bigint,
  capability: VolumeCapability | undefined,
): Promise<Answer<Responses['ControllerExpandVolume']>> {
  return bench.patiently(() =>
    bench.call('ControllerExpandVolume', {
      volume_id: id,
      capacity_range: { required_bytes: String(bytes) },
      secrets: bench.options.secrets,
      ...(capability !== undefined && { volume_capability: capability }),
    }),
  );
}

async function expand(bench: Bench, findings: Findings): Promise<void> {
  bench.needController('EXPAND_VOLUME');
  const { id, volume, request } = await bench.create();
  const before = BigInt(volume.capacity_bytes ?? '0');
  const bytes = (before > bench.options.sizeBytes ? before : bench.options.sizeBytes) * 2n;
  for (const which of ['once', 'the second time']) {
    const answer = await tryExpand(bench, id, bytes, request.volume_capabilities[0]);
    if (!answer.ok) {
      findings.fail(`${which}: ${bench.described(answer)}`);
      return;
    }
    const now = BigInt(answer.response.capacity_bytes ?? '0');
    if (now < bytes) {
      findings.fail(`${which}: capacity_bytes is ${now}; required_bytes was ${bytes}`);
      return;
    }
  }
}

function tryModify(bench: Bench, id: string, parameters: StringMap): Promise<Answer<object>> {
  const { secrets } = bench.options;
  return bench.patiently(() =>
    bench.call('ControllerModifyVolume', { volume_id: id, secrets, mutable_parameters: parameters }),
  );
}

async function capacity(bench: Bench, findings: Findings): Promise<void> {
  bench.needController('GET_CAPACITY');
  const places = bench.topology ? bench.knownSegments : [];
  for (const segments of places.length === 0 ? [undefined] : places) {
    const where = segments === undefined ? '' : ` for ${JSON.stringify(segments)}`;
    const { available_capacity: available = '0', maximum_volume_size: max } = bench.ok(
      await bench.call('GetCapacity', {
        volume_capabilities: [bench.capability()],
        parameters: bench.parameters,
        ...(segments !== undefined && { accessible_topology: { segments } }),
      }),
    );
    if (BigInt(available) < 0n) findings.fail(`available_capacity${where} is negative: ${available}`);
    else if (BigInt(available) < bench.options.sizeBytes)
      await made(bench, findings, segments, `available_capacity${where} is ${available}`);
    if (max?.value === undefined) continue;
    if (BigInt(max.value) < 0n) findings.fail(`maximum_volume_size${where} is negative: ${max.value}`);
    else if (BigInt(max.value) < bench.options.sizeBytes)
      await made(bench, findings, segments, `maximum_volume_size${where} is ${max.value}`);
  }
}

/** Kubernetes makes no volume where the capacity does not suffice: is it the truth? */
async function made(bench: Bench, findings: Findings, segments: StringMap | undefined, what: string): Promise<void> {
  const requirement =
    segments === undefined
      ? {}
      : { accessibility_requirements: { requisite: [{ segments }], preferred: [{ segments }] } };
  const answer = await bench.tryCreate(bench.request(requirement));
  if (answer.ok)
    findings.fail(`${what}, but a volume of ${bench.options.sizeBytes} bytes can be created: Kubernetes would not try`);
}
