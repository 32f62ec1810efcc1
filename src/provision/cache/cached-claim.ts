/** What the cache keeps of claims: those without a volume whole, as long as they are not too large in all. */
import { isDeepStrictEqual } from 'node:util';
import { gauge, type MetricRegistry } from '../../base/metrics.ts';
import { copied } from '../../base/short-value.ts';
import { type KubeObject, markReduced } from '../../kube/kube-object.ts';
import type { SharedValues } from '../../kube/cache/store.ts';
import { namesVolume, selectedNode } from '../claim-fields.ts';
import { decisiveAnnotationKeys, type PersistentVolumeClaim } from '../objects.ts';
import { type KeptFields, type KeptParts, keptParts } from './kept-fields.ts';

/** Max size of a claim without a volume that is kept whole, in characters of its keys and values. */
const maxWholeChars = 8192;
/** The longest value that is kept of a larger claim, in characters: names of classes and nodes are shorter. */
const maxValueChars = 1024;

/** Marks cached forms of claims without a volume that lack parts. */
const partialMark = Symbol('partial');

/**
 * Makes the cached form of claims. A claim without a volume is kept whole, since a provisioner may read all of it, and
 * only loses its managed fields, which an update may leave out. A large one keeps only what decides whether it is to be
 * provisioned, see `isPartialClaim`, and so does a small one once `budget` is used up. A claim with a volume keeps what
 * clones, source protection and deletion read, and `fields`. Reduced forms must never be sent back.
 */
export function claimTransform(
  shared: SharedValues,
  fields?: KeptFields<PersistentVolumeClaim>,
  budget?: ClaimBudget,
): (object: KubeObject) => PersistentVolumeClaim {
  return (object) => {
    const claim = object as PersistentVolumeClaim & { metadata: { managedFields?: unknown } };
    if (!isWholeClaim(claim)) return boundClaim(claim, shared, fields && keptParts(claim, fields));
    delete claim.metadata.managedFields;
    const chars = charsOf(claim);
    if (chars > maxWholeChars || budget?.take(claim, chars) === false) return partialClaim(claim, shared);
    if (claim.metadata.namespace !== undefined) claim.metadata.namespace = shared.string(claim.metadata.namespace);
    return claim;
  };
}

/** Whether a claim without a volume is cached in part: it is read from the API server before it is provisioned. */
export function isPartialClaim(claim: PersistentVolumeClaim): boolean {
  return partialMark in claim;
}

/**
 * The selected node, empty if there is none. A value that is too long for the name of a node is truncated, as in
 * partial cached forms, so that both compare equal.
 */
export function nodeName(claim: PersistentVolumeClaim): string {
  return start(selectedNode(claim));
}

/** Whether a claim is cached whole unless it is too large: it has no volume. */
export function isWholeClaim(claim: PersistentVolumeClaim): boolean {
  return !namesVolume(claim);
}

function partialClaim(claim: PersistentVolumeClaim, shared: SharedValues): PersistentVolumeClaim {
  const { metadata, spec } = claim;
  const { creationTimestamp, finalizers = [] } = metadata;
  const { dataSource, dataSourceRef } = spec;
  const isSmall = (value: unknown): boolean => charsOf(value) <= maxValueChars;
  const form = boundClaim(
    {
      ...claim,
      metadata: { ...metadata, finalizers: isSmall(finalizers) ? finalizers : [] },
      spec: {
        ...spec,
        dataSource: isSmall(dataSource) ? dataSource : undefined,
        dataSourceRef: isSmall(dataSourceRef) ? dataSourceRef : undefined,
      } as PersistentVolumeClaim['spec'],
    },
    shared,
    { annotations: decisiveAnnotations(metadata.annotations ?? {}) },
  );
  if (creationTimestamp !== undefined) form.metadata.creationTimestamp = creationTimestamp;
  return Object.assign(form, { [partialMark]: true });
}

function decisiveAnnotations(annotations: Record<string, string>): Record<string, string> {
  const present = decisiveAnnotationKeys.filter((key) => Object.hasOwn(annotations, key));
  return Object.fromEntries(present.map((key) => [key, start(annotations[key] ?? '')]));
}

/** The beginning of a long text, as partial cached forms keep it; a copy, as a substring would keep the whole text in memory. */
export function start(text: string): string {
  return text.length <= maxValueChars ? text : copied(text.slice(0, maxValueChars));
}

/** Characters of all keys and values; numbers, booleans and null count as eight. */
function charsOf(value: unknown): number {
  if (value === undefined) return 0;
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 8;
  return Object.entries(value).reduce((sum, [key, part]) => sum + key.length + charsOf(part), 0);
}

function boundClaim(
  { metadata, spec, status }: PersistentVolumeClaim,
  shared: SharedValues,
  kept: KeptParts<PersistentVolumeClaim> | undefined,
): PersistentVolumeClaim {
  const storage = spec.resources?.requests?.['storage'];
  const cached = {
    metadata: {
      name: metadata.name,
      namespace: shared.string(metadata.namespace),
      uid: metadata.uid,
      resourceVersion: metadata.resourceVersion,
      deletionTimestamp: metadata.deletionTimestamp,
      finalizers: shared.value(metadata.finalizers),
      ...(kept && { annotations: kept.annotations, labels: kept.labels }),
    },
    spec: {
      volumeName: spec.volumeName,
      storageClassName: shared.string(spec.storageClassName),
      volumeMode: shared.string(spec.volumeMode),
      resources: storage === undefined ? undefined : shared.value({ requests: { storage } }),
      dataSource: spec.dataSource,
      dataSourceRef: spec.dataSourceRef,
      ...kept?.spec,
    },
    status: shared.value(status?.phase === undefined ? undefined : { phase: status.phase }),
  };
  // Absent fields are set to undefined, so that all cached claims have one shape; no reader sees a difference.
  return markReduced(cached) as PersistentVolumeClaim;
}

/** Whether two cached forms differ in nothing that is read: then the change reaches no handler. */
export function sameClaim(old: PersistentVolumeClaim, claim: PersistentVolumeClaim): boolean {
  if (isWholeClaim(old) || isWholeClaim(claim)) return sameButVersion(old, claim);
  return (
    old.metadata.deletionTimestamp === claim.metadata.deletionTimestamp &&
    old.metadata.finalizers === claim.metadata.finalizers && // shared values are equal when they are the same
    old.status === claim.status &&
    old.spec.volumeName === claim.spec.volumeName &&
    old.spec.storageClassName === claim.spec.storageClassName &&
    old.spec.resources === claim.spec.resources
  );
}

/** Whether two cached forms of an object differ in nothing but the resource version. */
export function sameButVersion<T extends KubeObject>(old: T, object: T): boolean {
  const { resourceVersion } = object.metadata;
  return isDeepStrictEqual({ ...old, metadata: { ...old.metadata, resourceVersion } }, object);
}

/**
 * Max size of the claims without a volume that are kept whole, in characters: of their keys and values, plus `perClaim`
 * for each. The heap of a container with 512 MiB has room for several times as much, which it needs while a list
 * replaces all claims.
 */
const defaultMaxChars = 32 * 1024 * 1024;
/** The overhead of a claim in memory, in characters. */
const perClaim = 512;
/** Max namespaces that `top` returns. */
const maxTop = 3;

/**
 * Counts the size of claims that are kept whole. The content of the cache is counted exactly, from its changes. A form
 * that was created for the cache and is not in it yet counts as pending, until it is stored or, if it never is,
 * garbage-collected.
 */
export class ClaimBudget {
  readonly #maxChars: number;
  readonly #sizes = new WeakMap<PersistentVolumeClaim, number>();
  readonly #pending = new WeakSet<PersistentVolumeClaim>();
  readonly #collected = new FinalizationRegistry<number>((size) => (this.#pendingChars -= size));
  readonly #byNamespace = new Map<string, number>();
  #pendingChars = 0;
  #storedChars = 0;

  constructor({ maxChars = defaultMaxChars }: { maxChars?: number } = {}) {
    this.#maxChars = maxChars;
  }

  /** Characters of the claims in the cache that are kept whole. */
  get storedChars(): number {
    return this.#storedChars;
  }

  /** The namespaces with the largest total, the largest first. */
  top(): readonly (readonly [namespace: string, chars: number])[] {
    return [...this.#byNamespace].toSorted(([, one], [, other]) => other - one).slice(0, maxTop);
  }

  /** Whether a claim with that many characters may be kept whole; if so, it counts from now on. */
  take(claim: PersistentVolumeClaim, chars: number): boolean {
    const size = chars + perClaim;
    if (this.#storedChars + this.#pendingChars + size > this.#maxChars) return false;
    this.#sizes.set(claim, size);
    this.#pending.add(claim);
    this.#pendingChars += size;
    this.#collected.register(claim, size, claim);
    return true;
  }

  /** To be called for each change of the cache, with the old object under a key and the new one. */
  changed(old: PersistentVolumeClaim | undefined, claim: PersistentVolumeClaim | undefined): void {
    if (old === claim) return;
    if (old !== undefined) this.#count(old, -(this.#sizes.get(old) ?? 0));
    if (claim === undefined) return;
    const size = this.#sizes.get(claim) ?? 0;
    this.#count(claim, size);
    if (!this.#pending.delete(claim)) return;
    this.#pendingChars -= size;
    this.#collected.unregister(claim);
  }

  #count({ metadata: { namespace = '' } }: PersistentVolumeClaim, size: number): void {
    this.#storedChars += size;
    const chars = (this.#byNamespace.get(namespace) ?? 0) + size;
    if (chars === 0) this.#byNamespace.delete(namespace);
    else this.#byNamespace.set(namespace, chars);
  }
}

/** Creates a budget and registers its metric. @throws {Error} when the registry already has the metric. */
export function measuredClaimBudget(registry: MetricRegistry): ClaimBudget {
  const budget = new ClaimBudget();
  gauge({
    registry,
    labels: ['namespace'],
    name: 'claim_cache_bytes',
    help: 'Bytes of the claims without a volume that are cached whole, for the three largest namespaces; "" stands for all others',
    collect: (bytes) => {
      bytes.reset();
      let rest = budget.storedChars;
      for (const [namespace, chars] of budget.top()) {
        bytes.set({ namespace }, chars);
        rest -= chars;
      }
      bytes.set({ namespace: '' }, rest);
    },
  });
  return budget;
}
