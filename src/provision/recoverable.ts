/**
 * A provisioner whose attempts survive a crash: the controller records the plan of a volume before anything is created, and
 * fulfils or revokes it later, even in another process, or after claim and class are gone.
 */
import type { PersistentVolume } from './objects.ts';
import type { ProvisionContext, Provisioner, ProvisionOptions } from './provisioner.ts';

/**
 * What a volume will be created from: plain data that survives `JSON.stringify`, so no bigints, dates or class instances.
 * Must not be modified: plans share equal parts. It is stored in the cluster, readable by everyone who may read
 * Leases: never a secret, only references to Secrets.
 */
export type Plan = Readonly<Record<string, unknown>>;

/**
 * What `plan` may return in place of a plan: the plan, and what was read for it that must not be recorded, such as secrets, in fields of a class
 * that extends this one. A plan is a plain object and this is none, so no journal can encode it.
 */
export abstract class Planned<P extends object = Plan> {
  readonly plan: P;

  constructor(plan: P) {
    this.plan = plan;
  }
}

/** What `fulfil` is given. */
export interface FulfilContext extends ProvisionContext {
  /** What `plan` has returned for this plan, if that was in this process, and no plain plan. */
  planned?: Planned<object> | undefined;
  /**
   * An earlier attempt with this plan may have reached the backend, perhaps of another process: what the plan was made
   * from may be gone, and must not be looked up again.
   */
  mayExist: boolean;
  /**
   * To be awaited directly before storage that was created from the plan is deleted again, such as a volume that is too
   * small. Proves that no PersistentVolume has had the storage, and records the deletion.
   *
   * @param handle - the storage, as `handleKey` takes it; not empty.
   * @throws when nothing may be deleted now; to be passed on unchanged.
   */
  beforeDelete(handle: string): Promise<void>;
  /**
   * May be called as soon as the backend has named the storage, and before anything else is requested: if no claim needs it any more, `revoke`
   * is given this handle, and need not look for the storage by a request that could create it.
   *
   * @param handle - as for `beforeDelete`; not empty.
   */
  created?(handle: string): void;
}

/** What `revoke` is given. */
export interface RevokeContext extends ProvisionContext {
  /** The storage, where it is known from an earlier attempt: only its deletion is left to do, and nothing may be created. */
  handle: string | undefined;
  /** As in `FulfilContext`; also checks whether the claim needs the volume after all. */
  beforeDelete(handle: string): Promise<void>;
}

/**
 * A provisioner whose attempts are journaled. Instead of `provision`, which is not called even if it exists, it has `plan`,
 * `fulfil` and `revoke`; the other methods are those of `Provisioner`.
 *
 * `P`: what its plans are. Those that `fulfil`, `revoke` and `release` are given may have been read from a record, which an earlier
 * version of the program has written: keep their form, or check it.
 */
export interface Recoverable<P extends object = Plan> extends Omit<Provisioner, 'provision'> {
  /**
   * Decides what to create. Writes nothing, and changes nothing at the backend; called again until a request for a plan has been sent to the backend.
   * A plan with anything that JSON does not give back as it was, such as a Date or a bigint, is refused: the attempt fails.
   *
   * @throws {ProvisionError} and {IgnoredError} as `Provisioner.provision` does.
   */
  plan(options: ProvisionOptions, context: ProvisionContext): Promise<P | Planned<P>>;
  /**
   * Creates the storage and describes it, as `Provisioner.provision` does. May be repeated with the same plan, and then finds what an
   * earlier attempt created. The volume gets the name that `plan` was given.
   *
   * @throws {ProvisionError} whose state says what this attempt reveals about the backend; what it says about earlier ones is
   * in `afterUnclear`.
   */
  fulfil(plan: P, context: FulfilContext): Promise<PersistentVolume>;
  /**
   * Finds what an earlier attempt may have created, waits for `beforeDelete`, and deletes it. Resolves once it is certain that
   * nothing is left. May be repeated.
   *
   * @throws {ProvisionError} as `fulfil`, and what `beforeDelete` throws.
   */
  revoke(plan: P, context: RevokeContext): Promise<void>;
  /** As in `Provisioner`: while a PersistentVolume has the storage, nothing is deleted. */
  storageKeys(volume: PersistentVolume): readonly string[];
  /**
   * The key under which `storageKeys` names the storage of a volume with this handle, as `beforeDelete` was given it. Pure;
   * must not throw.
   */
  handleKey(handle: string): string;
  /**
   * What the backend has read of the requests that `fulfil` and `revoke` have given up. Absent: a request that was given up counts as
   * read, so that it ends within 1.5 times the time of a call.
   */
  readonly progress?: BackendProgress | undefined;
  /**
   * Whether the volume was created by another instance, on a backend that this instance cannot reach, such as that of another
   * node. Then its existence does not prove that a plan of this instance left nothing behind, and the record is kept for an
   * operator. Called for a PersistentVolume with the name in the record. Pure; must not throw. Absent: all instances share one
   * backend.
   */
  isElsewhere?: ((volume: PersistentVolume) => boolean) | undefined;
  /**
   * The plan is given up: frees what `fulfil` holds besides the storage, such as the protection of a source. If the claim wants the
   * volume after all, `fulfil` is called with the plan once more. Not called where `fulfil` succeeds and its volume is saved, and not
   * where the first attempt created nothing: the next one has a new plan, which needs the same. What is held when such a claim is deleted
   * is to be freed by `forget`, or by a sweep. Must not throw; a repeat must be safe.
   */
  release?(plan: P, context: ProvisionContext): Promise<void>;
  /**
   * Whether `fulfil` holds something for the plan that `release` frees. Then a volume that no claim wants is looked for at once, so that it is
   * freed; otherwise only when no earlier call can be under way any more. Pure; must not throw. Absent: yes, where there is a `release`.
   */
  holds?(plan: P): boolean;
}

const recoverableMethods = ['plan', 'fulfil', 'revoke', 'storageKeys', 'handleKey'] as const;

/** Whether the provisioner has all methods of `Recoverable`. */
export function isRecoverable(provisioner: Provisioner | Recoverable<object>): provisioner is Recoverable {
  return missingOf(provisioner).length === 0;
}

/** The methods besides `delete` that a provisioner lacks to be `Recoverable`. */
export function missingOf(provisioner: Partial<Recoverable<object>>): string[] {
  return recoverableMethods.filter((method) => typeof provisioner[method] !== 'function');
}

/** Whether a volume has the storage of the handle; in doubt it has. */
export function hasStorage(
  provisioner: Pick<Recoverable, 'storageKeys' | 'handleKey'>,
  volume: PersistentVolume,
  handle: string,
): boolean {
  return provisioner.storageKeys(volume).includes(provisioner.handleKey(handle));
}

/**
 * How much a backend has read of what it was sent. A backend that stalls, such as a frozen process, may begin a request only when it
 * resumes, even if the request was given up long before.
 */
export interface BackendProgress {
  /** Whether a request that may create storage was given up, and may not have been read yet. */
  readonly isBehind: boolean;
  /**
   * Calls the listener whenever the backend has read more, until the result is disposed. The listener is given a monotonic time in
   * milliseconds, or `Infinity`: every request that was given up before this time has been read, or never will be. The listener must not throw.
   */
  onProgress(listener: (untilMs: number) => void): Disposable;
}

/** An array with more items is checked once: plans share them, and they must not be modified. */
const sharedLength = 100;
const maxDepth = 100;

const checked = new WeakSet<object>();

/** @throws {TypeError} for a plan that JSON does not give back as it is, apart from fields that are undefined: says which value, and where. */
export function checkPlan(plan: unknown): asserts plan is Plan {
  if (isPlainObject(plan)) checkFields(plan, []);
  else throw refusal(plan, []);
}

type Path = readonly (string | number)[];

function check(value: unknown, path: Path): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)) return;
  if (path.length > maxDepth)
    throw new TypeError('plan() returned an object that contains itself, or has more than 100 levels');
  if (Array.isArray(value)) checkItems(value, path);
  else if (isPlainObject(value)) checkFields(value, path);
  else throw refusal(value, path);
}

function checkItems(items: readonly unknown[], path: Path): void {
  if (checked.has(items)) return;
  for (const [index, item] of items.entries()) check(item, [...path, index]);
  if (items.length > sharedLength) checked.add(items);
}

function checkFields(object: object, path: Path): void {
  for (const [name, value] of Object.entries(object)) {
    if (value !== undefined) check(value, [...path, name]); // JSON drops it, which reads the same
  }
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    (prototype === Object.prototype || prototype === null) &&
    typeof (value as { toJSON?: unknown }).toJSON !== 'function'
  );
}

function refusal(value: unknown, path: Path): TypeError {
  const where = path.length === 0 ? '' : ` at ${JSON.stringify(path.join('.'))}`;
  return new TypeError(
    `plan() returned ${kindOf(value)}${where}: a plan is stored as JSON. It must be a plain object of \
strings, finite numbers, booleans, null, arrays and plain objects`,
  );
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null || typeof value === 'number') return String(value);
  if (typeof value !== 'object') return `a ${typeof value}`;
  if (Array.isArray(value)) return 'an array';
  const { constructor } = value as { constructor?: { name: string } };
  if (constructor === undefined || constructor === Object) return 'an object with a method toJSON, or of no class';
  return `an instance of ${constructor.name || 'a class without a name'}`;
}
