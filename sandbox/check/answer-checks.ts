/** What all answers of a run show. Made at the end. */
import type { Bench } from './bench.ts';
import type { Check, Findings } from './check.ts';
import { described } from './csi-client.ts';
import type { MadeVolume } from './ledger.ts';
import { mapBytes, maxMapBytes, maxStringBytes } from './size-limits.ts';
import { covers, segmentMistakes } from './topology-rules.ts';
import { CheckSkipped } from './outcome.ts';

export const answerChecks: readonly Check[] = [
  {
    id: 'volume-id',
    title: 'every volume_id has 1 to 128 bytes and belongs to one name',
    section: 'CreateVolume, volume_id',
    part: 'answers',
    run: (bench, findings) =>
      checkIds(
        made(bench).filter(({ request }) => isUsual(request.name)),
        findings,
      ),
  },
  {
    id: 'snapshot-id',
    title: 'every snapshot_id has at most 128 bytes',
    section: 'Size Limits',
    part: 'answers',
    run: ({ ledger }, findings) => checkSnapshotIds([...ledger.everTaken], findings),
  },
  {
    id: 'volume-context',
    title: 'every volume_context has at most 4 KiB',
    section: 'Size Limits',
    part: 'answers',
    run(bench, findings) {
      const bytes = Math.max(...made(bench).map(({ volume }) => mapBytes(volume.volume_context)));
      if (bytes > maxMapBytes) findings.fail(`volume_context has ${bytes} bytes; at most ${maxMapBytes} are allowed`);
    },
  },
  {
    id: 'volume-capacity',
    title: 'every volume has the size that was requested',
    section: 'CreateVolume, CapacityRange',
    part: 'answers',
    run: (bench, findings) => once(made(bench).flatMap(capacityMistakes), (text) => findings.fail(text)),
  },
  {
    id: 'volume-topology',
    title: 'every volume is where it was requested, and an existing node can reach it',
    section: 'CreateVolume, accessible_topology',
    part: 'answers',
    run: (bench, findings) =>
      once(
        made(bench).flatMap((each) => topologyMistakes(bench, each)),
        (text) => findings.fail(text),
      ),
  },
  {
    id: 'error-status',
    title: 'every error has a message, and no details',
    section: 'Error Scheme',
    part: 'answers',
    run: checkErrors,
  },
];

/** @throws {CheckSkipped} when there is nothing to judge. */
function made({ ledger }: Bench): MadeVolume[] {
  if (ledger.made.length === 0) throw new CheckSkipped('no volume was created');
  return ledger.made;
}

function once(texts: readonly string[], report: (text: string) => void): void {
  const all = [...new Set(texts)];
  for (const text of all.slice(0, 3)) report(text);
  if (all.length > 3) report(`and ${all.length - 3} more of this kind`);
}

/** Kubernetes sends no longer names than those of a prefix and a UID. */
function isUsual(name: string): boolean {
  return Buffer.byteLength(name) <= 64;
}

function checkSnapshotIds(ids: readonly string[], findings: Findings): void {
  if (ids.length === 0) throw new CheckSkipped('no snapshot was created');
  const bytes = Math.max(...ids.map((id) => Buffer.byteLength(id)));
  if (bytes > maxStringBytes) findings.fail(`snapshot_id has ${bytes} bytes; at most ${maxStringBytes} are allowed`);
}

function checkIds(all: readonly MadeVolume[], findings: Findings): void {
  const ids = all.map(({ volume }) => volume.volume_id ?? '');
  if (ids.includes('')) findings.fail('volume_id is empty, but the field is REQUIRED');
  const bytes = Math.max(...ids.map((id) => Buffer.byteLength(id)));
  if (bytes > maxStringBytes)
    findings.fail(`volume_id has ${bytes} bytes; at most ${maxStringBytes} are allowed`, 'Size Limits');
  const names = new Map<string, string>();
  for (const { request, volume } of all) {
    const { volume_id: id = '' } = volume;
    const other = names.get(id);
    if (id !== '' && other !== undefined && other !== request.name) {
      findings.fail(`volume_id ${JSON.stringify(id)} was given to two names: ${other} and ${request.name}`);
      return;
    }
    names.set(id, request.name);
  }
}

function capacityMistakes({ request, volume }: MadeVolume): string[] {
  const bytes = BigInt(volume.capacity_bytes ?? '0');
  const { required_bytes: required = '0', limit_bytes: limit = '0' } = request.capacity_range ?? {};
  if (bytes < 0n) return [`capacity_bytes is negative: ${bytes}`];
  if (bytes === 0n) return []; // unknown
  if (bytes < BigInt(required)) return [`capacity_bytes is ${bytes}, less than required_bytes ${required}`];
  if (limit !== '0' && bytes > BigInt(limit)) return [`capacity_bytes is ${bytes}, more than limit_bytes ${limit}`];
  return [];
}

function topologyMistakes(bench: Bench, { request, volume }: MadeVolume): string[] {
  const places = (volume.accessible_topology ?? []).map(({ segments = {} }) => segments);
  if (!bench.topology)
    return places.length === 0 ? [] : ['accessible_topology is set without VOLUME_ACCESSIBILITY_CONSTRAINTS'];
  const nodes = bench.knownSegments;
  if (places.length === 0) {
    return nodes.length === 0
      ? []
      : ['accessible_topology is empty, although VOLUME_ACCESSIBILITY_CONSTRAINTS is announced'];
  }
  const mistakes = places.flatMap(segmentMistakes);
  if (mistakes.length > 0) return mistakes;
  const empty = places.some((place) => Object.keys(place).length === 0);
  if (empty) return ['an entry of accessible_topology has no segments'];
  const asked = (request.accessibility_requirements?.requisite ?? []).map(({ segments = {} }) => segments);
  const where = JSON.stringify(places);
  if (nodes.length > 0 && !places.some((place) => nodes.some((node) => covers(place, node)))) {
    return [`the volume is in ${where}, where there is no node; the nodes are in ${JSON.stringify(nodes)}`];
  }
  // A driver that takes a segment which no node has is told so once, by create-elsewhere.
  const served = asked.some((term) => nodes.some((node) => covers(term, node)));
  if (served && !places.some((place) => asked.some((term) => covers(place, term)))) {
    return [`${JSON.stringify(asked)} was requested, but the volume is in ${where}`];
  }
  return [];
}

function checkErrors({ answers }: Bench, findings: Findings): void {
  const errors = answers.filter((answer) => !answer.ok).filter(({ stalled }) => !stalled);
  if (errors.length === 0) throw new CheckSkipped('no call failed');
  const methods = (some: typeof errors): string =>
    [...new Set(some.map(({ method, code }) => `${method} (${code})`))].join(', ');
  const silent = errors.filter(({ message }) => message === '');
  if (silent.length > 0) findings.fail(`errors without a message: ${methods(silent)}`);
  const detailed = errors.filter((answer) => answer.detailed);
  if (detailed.length > 0) findings.warn(`errors with details, which must be empty: ${methods(detailed)}`);
  const unknown = errors.filter(({ code }) => code === 'UNKNOWN');
  if (unknown.length > 0)
    findings.warn(`errors with the gRPC code UNKNOWN, which says nothing: ${described(unknown[0]!)}`);
}
