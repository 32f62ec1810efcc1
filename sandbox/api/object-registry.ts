import type { Clock } from '../../src/base/clock.ts';
import { admitCreate, admitUpdate, requireNamespace } from './admission.ts';
import type { SandboxMeta, SandboxObject } from './client.ts';
import { checkPreconditions, type DeleteOptions, graceSeconds, isReleased, namespaceFinalizers } from './deletion.ts';
import { alreadyExists, conflict, notFound, StatusError } from './status-error.ts';
import { invalidObject, throwErrors } from './field-error.ts';
import { applyConfiguration, type Owners } from './field-ownership.ts';
import { type FieldValidation, fromRequest, requireSameObject } from './incoming-object.ts';
import { at, copyJson, isObject, jsonEqual, type JsonObject, objectAt } from './json.ts';
import { finalizerErrors, generationErrors, metadataErrors, serverFieldErrors } from './metadata-rules.ts';
import { generatedName, type RandomSource, randomUid } from './names.ts';
import type { KindRules } from './kind-rules.ts';
import type { ResourceType, VersionedType } from './resource-type.ts';
import { Revision } from './revision.ts';
import { rulesOf } from './rules-by-kind.ts';
import type { Store } from './store.ts';
import { timestamp } from './timestamps.ts';

/** How a write is to be done. */
export interface WriteOptions {
  /** Everything but the commit. */
  readonly dryRun?: boolean;
  readonly fieldManager?: string;
  /** What happens to unknown fields; `Warn` by default. */
  readonly fieldValidation?: FieldValidation;
  /** Takes warnings for the client. */
  readonly warn?: (text: string) => void;
}

/** What a write did. */
export interface WriteResult {
  readonly revision: Revision;
  readonly created: boolean;
  /** The object is gone, as opposed to changed. */
  readonly removed: boolean;
}

/** An object addressed by a request. */
export interface Target {
  readonly type: ResourceType;
  readonly version: string;
  readonly namespace: string;
  readonly name: string;
}

/** The part of the object a write is for: `main` is all but the status, `everything` is for the server itself. */
export type WritePart = 'main' | 'status' | 'finalize' | 'everything';

const generateNameTries = 8;

/**
 * The rules of writing objects, the same for HTTP clients and for the controllers of this process: every
 * method reads, checks and commits in one synchronous step and throws `StatusError` with nothing changed.
 */
export class ObjectRegistry {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #newUid: () => string;
  /** Owners of applied fields by uid of the object. */
  readonly #owners = new Map<string, Owners>();

  constructor(options: { store: Store; clock: Clock; random?: RandomSource }) {
    this.#store = options.store;
    this.#clock = options.clock;
    const { random } = options;
    this.#random = random ?? Math.random;
    this.#newUid = random === undefined ? () => crypto.randomUUID() : () => randomUid(random);
    this.#store.onEveryCommit(({ type, revision }) => {
      if (type === 'DELETED') this.#owners.delete(revision.object.metadata.uid ?? '');
    });
  }

  /** @throws {StatusError} `NotFound`. */
  read({ type, namespace, name }: Target): Revision {
    const revision = this.#store.get(type.storage, namespace, name);
    if (revision === undefined) throw notFound(type, name);
    return revision;
  }

  create(to: VersionedType, namespace: string, body: JsonObject, options: WriteOptions = {}): WriteResult {
    const { type } = to;
    const object = fromRequest(to, body, options);
    const { metadata } = object;
    requireSameObject(metadata, namespace, undefined);
    if (type.namespaced) metadata.namespace = namespace;
    else delete metadata.namespace;
    const generated = metadata.name === '' && (metadata.generateName ?? '') !== '';
    if (generated) metadata.name = this.#freeName(type, metadata);
    if (type.namespaced) requireNamespace(this.#store, type, namespace, metadata.name);
    const given = { ...metadata };
    setServerFields(metadata, {
      uid: this.#newUid(),
      creationTimestamp: timestamp(this.#clock.wallMs()),
      ...(type.generation ? { generation: 1 } : {}),
    });
    const rules = rulesOf(type.storage);
    if (type.subresources.includes('status') && type.storage !== 'nodes') delete object['status'];
    rules.complete?.(object);
    rules.prepareCreate?.(object, { nowMs: this.#clock.wallMs() });
    admitCreate(this.#store, type, object);
    throwErrors(type, metadata.name, [
      ...metadataErrors(metadata, { nameProblem: rules.nameProblem, anyFinalizer: isFreeOfCoreRules(type) }),
      ...(type.generation ? [] : generationErrors(given)),
      ...(rules.validate?.(object) ?? []),
    ]);
    if (options.dryRun !== true && (metadata.resourceVersion ?? '') !== '') {
      throw new StatusError('', 'resourceVersion should not be set on objects to be created', { code: 500 });
    }
    if (this.#store.get(type.storage, metadata.namespace ?? '', metadata.name) !== undefined) {
      throw alreadyExists(type, metadata.name);
    }
    if (options.dryRun === true) return { revision: new Revision(0, object), created: true, removed: false };
    return { revision: this.#store.put(type.storage, object), created: true, removed: false };
  }

  /** PUT on an object or one of its parts. */
  update(target: Target, body: JsonObject, part: WritePart = 'main', options: WriteOptions = {}): WriteResult {
    const { type, namespace, name } = target;
    const object = fromRequest(target, body, options);
    const stored = this.#store.get(type.storage, namespace, name);
    requireSameObject(object.metadata, namespace, name);
    if (stored === undefined) {
      if (!type.createOnUpdate || part !== 'main') throw notFound(type, name);
      delete object.metadata.resourceVersion;
      return this.create(target, namespace, object, options);
    }
    return this.#replace(target, stored, object, part, options);
  }

  /**
   * Reads the object, lets `change` make the new one of it in the request's version, and writes that. A
   * `resourceVersion` that `change` puts in makes the write conditional.
   */
  patch(
    target: Target,
    change: (current: JsonObject) => unknown,
    part: WritePart = 'main',
    options: WriteOptions = {},
  ): WriteResult {
    const stored = this.read(target);
    const changed = change(shownAs(target, stored.object));
    if (!isObject(changed)) throw new StatusError('Invalid', 'the patch does not leave an object');
    const object = fromRequest(target, changed, options);
    requireSameObject(object.metadata, target.namespace, target.name);
    return this.#replace(target, stored, object, part, options);
  }

  /** Server-side apply. */
  apply(
    target: Target,
    body: JsonObject,
    part: WritePart,
    options: WriteOptions & { fieldManager: string; force: boolean },
  ): WriteResult {
    const { type, namespace, name } = target;
    const stored = this.#store.get(type.storage, namespace, name);
    if (stored === undefined && part !== 'main') throw notFound(type, name);
    const config = copyJson(body, { dropNulls: true });
    const given = { kind: type.kind, apiVersion: String(config['apiVersion']), config, manager: options.fieldManager };
    if (stored === undefined) {
      const { owners } = applyConfiguration({ ...given, live: {}, force: options.force, owners: new Map() });
      const metadata = { ...objectAt(config, 'metadata'), name };
      const result = this.create(target, namespace, { ...config, metadata }, options);
      this.#remember(result, owners, options);
      return result;
    }
    const uid = stored.object.metadata.uid ?? '';
    const { object, owners } = applyConfiguration({
      ...given,
      live: shownAs(target, stored.object),
      force: options.force,
      owners: this.#owners.get(uid) ?? new Map<string, Map<string, never>>(),
    });
    const rv = at(config, 'metadata', 'resourceVersion');
    if (typeof rv === 'string' && isObject(object['metadata'])) object['metadata']['resourceVersion'] = rv;
    const result = this.patch(target, () => object, part, options);
    this.#remember(result, owners, options);
    return result;
  }

  delete(target: Target, options: DeleteOptions = {}): WriteResult {
    const stored = this.read(target);
    const { type, name } = target;
    checkPreconditions(type, name, stored.object.metadata, options);
    const object = copyJson(stored.object);
    const grace = graceSeconds(type, object, options);
    const { metadata } = object;
    const held =
      (metadata.finalizers ?? []).length > 0 ||
      namespaceFinalizers(type, object).length > 0 ||
      (grace > 0 && type.kind === 'Pod');
    if (!held) return this.#remove(type, object, options);
    if (metadata.deletionTimestamp !== undefined && grace >= (metadata.deletionGracePeriodSeconds ?? 0)) {
      return { revision: stored, created: false, removed: false };
    }
    metadata.deletionTimestamp ??= timestamp(this.#clock.wallMs() + grace * 1000);
    if (type.kind !== 'Namespace') metadata.deletionGracePeriodSeconds = grace;
    if (type.generation) metadata.generation = (metadata.generation ?? 0) + 1;
    if (type.kind === 'Namespace') object['status'] = { ...objectAt(object, 'status'), phase: 'Terminating' };
    if (options.dryRun === true) return { revision: new Revision(stored.rv, object), created: false, removed: false };
    return { revision: this.#store.put(type.storage, object), created: false, removed: false };
  }

  #replace(
    target: Target,
    stored: Revision,
    incoming: SandboxObject,
    part: WritePart,
    options: WriteOptions,
  ): WriteResult {
    const { type, name } = target;
    const rules = rulesOf(type.storage);
    const old = completed(stored.object, rules);
    const given = { ...incoming.metadata };
    if (given.uid !== undefined && given.uid !== '' && given.uid !== old.metadata.uid) {
      const [uid, wanted] = [old.metadata.uid ?? '', given.uid];
      throw conflict(type, name, `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${uid}`);
    }
    const rv = numberOf(given.resourceVersion);
    if (rv === 0n && !type.unconditionalUpdate) throw needsVersion(type, name);
    if (rv !== 0n && rv !== BigInt(stored.rv)) {
      throw conflict(
        type,
        name,
        'the object has been modified; please apply your changes to the latest version and try again',
      );
    }
    const object = joinParts(type, part, incoming, old);
    setServerFields(object.metadata, old.metadata);
    rules.complete?.(object);
    rules.prepareUpdate?.(object, old, { nowMs: this.#clock.wallMs() });
    if (type.generation && !jsonEqual(desired(object), desired(old))) {
      object.metadata.generation = (old.metadata.generation ?? 0) + 1;
    }
    object.metadata.resourceVersion = String(stored.rv);
    throwErrors(type, name, [
      ...metadataErrors(object.metadata, {
        nameProblem: rules.nameProblem,
        anyFinalizer: isFreeOfCoreRules(type),
        generateNameProblem: rules.updatedGenerateNameProblem,
      }),
      ...finalizerErrors(object.metadata, old.metadata),
      ...serverFieldErrors(given, old.metadata),
      ...(rules.validate?.(object, old) ?? []),
      ...(rules.validateUpdate?.(object, old) ?? []),
    ]);
    admitUpdate(this.#store, type, object, old);
    if (isReleased(type, object)) return this.#remove(type, object, options);
    if (jsonEqual(object, old)) return { revision: stored, created: false, removed: false };
    if (options.dryRun === true) return { revision: new Revision(stored.rv, object), created: false, removed: false };
    return { revision: this.#store.put(type.storage, object), created: false, removed: false };
  }

  #remove(type: ResourceType, object: SandboxObject, options: { readonly dryRun?: boolean }): WriteResult {
    const { dryRun = false } = options;
    const rv = Number(object.metadata.resourceVersion);
    const revision = dryRun ? new Revision(rv, object) : this.#store.remove(type.storage, object);
    return { revision, created: false, removed: true };
  }

  #freeName(type: ResourceType, metadata: SandboxMeta): string {
    const base = metadata.generateName ?? '';
    let name = '';
    for (let attempt = 0; attempt < generateNameTries; attempt++) {
      name = generatedName(base, this.#random);
      if (this.#store.get(type.storage, metadata.namespace ?? '', name) === undefined) return name;
    }
    const { message, details } = alreadyExists(type, name);
    throw new StatusError(
      'AlreadyExists',
      `${message}, the server was not able to generate a unique name for the object`,
      { details: { ...details, retryAfterSeconds: 1 } },
    );
  }

  #remember({ revision, removed }: WriteResult, owners: Owners, options: WriteOptions): void {
    if (options.dryRun !== true && !removed) this.#owners.set(revision.object.metadata.uid ?? '', owners);
  }
}

/** As Kubernetes reads an object that an older release has stored. */
function completed(object: SandboxObject, rules: KindRules): SandboxObject {
  if (rules.complete === undefined) return object;
  const copy = copyJson(object);
  rules.complete(copy);
  return copy;
}

/** Kinds whose finalizers may have any name: those that no part of Kubernetes itself has rules for, and leases. */
function isFreeOfCoreRules(type: ResourceType): boolean {
  return type.custom || type.kind === 'Lease';
}

/** @returns 0 for none. @throws {StatusError} with code 500, as a real server does, for one that is no number. */
function numberOf(resourceVersion = ''): bigint {
  if (resourceVersion === '') return 0n;
  if (/^\d+$/.test(resourceVersion) && BigInt(resourceVersion) < 2n ** 64n) return BigInt(resourceVersion);
  throw new StatusError('', `the resourceVersion ${JSON.stringify(resourceVersion)} is no number`, { code: 500 });
}

function needsVersion(type: ResourceType, name: string): StatusError {
  return invalidObject(type.kind, type.group, name, [
    {
      field: 'metadata.resourceVersion',
      reason: 'FieldValueInvalid',
      message: 'Invalid value: 0x0: must be specified for an update',
    },
  ]);
}

const serverFields = [
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
] as const;

/** Overwrites what clients cannot set. */
function setServerFields(metadata: SandboxMeta, server: Partial<SandboxMeta>): void {
  for (const field of serverFields) {
    if (server[field] === undefined) Reflect.deleteProperty(metadata, field);
    else Object.assign(metadata, { [field]: server[field] });
  }
  for (const field of ['managedFields', 'selfLink']) Reflect.deleteProperty(metadata, field);
}

/** A private copy of a stored object in the version of the request. */
function shownAs({ type, version }: VersionedType, object: SandboxObject): JsonObject {
  const shown = type.fromStored === undefined ? object : type.fromStored(object);
  const apiVersion = type.group === '' ? version : `${type.group}/${version}`;
  return copyJson({ ...shown, apiVersion });
}

/** The object a write leaves behind: what it may write from the request, everything else as stored. */
function joinParts(type: ResourceType, part: WritePart, incoming: SandboxObject, old: SandboxObject): SandboxObject {
  if (part === 'everything') return incoming;
  if (part === 'main') {
    if (!type.subresources.includes('status')) return incoming;
    const { status: _ignored, ...rest } = incoming;
    const status = old['status'];
    return copyJson({ ...rest, ...(status === undefined ? {} : { status }) });
  }
  if (part === 'finalize') {
    const finalizers = at(incoming, 'spec', 'finalizers') ?? [];
    return copyJson({ ...old, spec: { ...objectAt(old, 'spec'), finalizers } });
  }
  const metadata = type.custom
    ? { ...old.metadata, ...(incoming.metadata.uid === undefined ? {} : { uid: incoming.metadata.uid }) }
    : incoming.metadata;
  const status = incoming['status'];
  const { status: _old, ...rest } = old;
  return copyJson({ ...rest, metadata, ...(status === undefined ? {} : { status }) });
}

/** Everything whose change counts as a new generation. */
function desired(object: SandboxObject): JsonObject {
  return { ...object, metadata: undefined, status: undefined };
}
