import { isObject, type JsonObject } from './json.ts';
import type { RandomSource } from './names.ts';
import { StatusError } from './status-error.ts';

/** Which requests a fault hits; each given field must be equal. */
export interface FaultMatch {
  readonly user?: string;
  /** Part of the `User-Agent` header. */
  readonly userAgent?: string;
  readonly verb?: string;
  readonly group?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly watch?: boolean;
}

/** What a fault does. */
export type FaultAction =
  | { readonly type: 'delay'; readonly ms: number }
  | {
      readonly type: 'status';
      readonly code: number;
      readonly reason?: string;
      readonly message?: string;
      /** Seconds in the header `Retry-After`. */
      readonly retryAfter?: number;
    }
  /** Aborts the connection without handling the request. */
  | { readonly type: 'dropBefore' }
  /** Handles the request, then aborts the connection: the client cannot know the outcome. */
  | { readonly type: 'dropAfter' }
  /** Aborts the connection after this many bytes of the body. */
  | { readonly type: 'truncate'; readonly bytes: number }
  | { readonly type: 'htmlBody'; readonly code: number }
  /** Changes the RV of the object right before the request reaches it. */
  | { readonly type: 'conflictOnce' }
  /** Serves a get or list as of so many commits ago. */
  | { readonly type: 'staleRead'; readonly rvBack: number }
  | {
      readonly type: 'watchCut';
      readonly afterMs?: number;
      readonly afterEvents?: number;
      readonly how?: 'clean' | 'reset';
    }
  | { readonly type: 'watchError'; readonly code: number; readonly reason: string }
  /** Keeps the watch open and silent. */
  | { readonly type: 'watchStall' }
  | { readonly type: 'watchDelay'; readonly ms: number }
  /** Sends every event twice. */
  | { readonly type: 'watchDuplicate' }
  | { readonly type: 'noBookmarks' }
  /** Refuses streaming lists as a server without the feature. */
  | { readonly type: 'noWatchList' }
  /** Ignores the parameters of streaming lists as an old server. */
  | { readonly type: 'ignoreWatchListParams' }
  | { readonly type: 'compactNow' }
  /** Responds with 410 to every page but the first. */
  | { readonly type: 'expireContinue' }
  | { readonly type: 'throttleBytes'; readonly bytesPerSecond: number }
  /** Aborts every connection for so long. */
  | { readonly type: 'unavailable'; readonly ms: number };

/** A fault and when it strikes. */
export interface FaultRule {
  readonly match?: FaultMatch;
  readonly action: FaultAction;
  /** From 0 to 1; 1 if absent. */
  readonly probability?: number;
  /** At most so often; without bound if absent. */
  readonly times?: number;
  /** Spares the first so many matching requests. */
  readonly after?: number;
  /** Hits only every so-manieth matching request. */
  readonly every?: number;
}

/** A request in the words of a rule. */
interface FaultSubject {
  readonly user: string;
  readonly userAgent: string;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly watch: boolean;
}

/** A rule that can be taken back; `remove` is safe to repeat. */
export interface InjectedFault {
  readonly id: number;
  /** How often it struck so far. */
  readonly hits: number;
  remove(): void;
}

/** The faults a server is to make. Without rules it makes none; of several that match the first added strikes. */
export class Faults {
  readonly #random: RandomSource;
  readonly #rules = new Map<number, { rule: FaultRule; matched: number; hits: number }>();
  #nextId = 1;

  constructor(options: { random: RandomSource }) {
    this.#random = options.random;
  }

  add(rule: FaultRule): InjectedFault {
    const id = this.#nextId++;
    const entry = { rule, matched: 0, hits: 0 };
    this.#rules.set(id, entry);
    return {
      id,
      get hits() {
        return entry.hits;
      },
      remove: () => {
        this.#rules.delete(id);
      },
    };
  }

  /** Takes all rules back. */
  clear(): void {
    this.#rules.clear();
  }

  /** Takes one rule back by its id; unknown ids are ignored. */
  remove(id: number): void {
    this.#rules.delete(id);
  }

  /** What is to happen to this request; counts it as hit. */
  strike(subject: FaultSubject): FaultAction | undefined {
    for (const entry of this.#rules.values()) {
      const { rule } = entry;
      if (entry.hits >= (rule.times ?? Infinity) || !matches(rule.match ?? {}, subject)) continue;
      entry.matched++;
      const due = entry.matched - (rule.after ?? 0);
      if (due <= 0 || due % (rule.every ?? 1) !== 0) continue;
      if (rule.probability !== undefined && this.#random() >= rule.probability) continue;
      entry.hits++;
      return rule.action;
    }
    return undefined;
  }
}

function matches(match: FaultMatch, subject: FaultSubject): boolean {
  const { userAgent, ...equal } = match;
  if (userAgent !== undefined && !subject.userAgent.includes(userAgent)) return false;
  return Object.entries(equal).every(([field, value]) => subject[field as keyof FaultSubject] === value);
}

/** Fields of each action: `number` and `string` must be there, with `?` they may. */
const actionFields: Record<FaultAction['type'], Record<string, 'number' | 'number?' | 'string' | 'string?'>> = {
  delay: { ms: 'number' },
  status: { code: 'number', reason: 'string?', message: 'string?', retryAfter: 'number?' },
  dropBefore: {},
  dropAfter: {},
  truncate: { bytes: 'number' },
  htmlBody: { code: 'number' },
  conflictOnce: {},
  staleRead: { rvBack: 'number' },
  watchCut: { afterMs: 'number?', afterEvents: 'number?', how: 'string?' },
  watchError: { code: 'number', reason: 'string' },
  watchStall: {},
  watchDelay: { ms: 'number' },
  watchDuplicate: {},
  noBookmarks: {},
  noWatchList: {},
  ignoreWatchListParams: {},
  compactNow: {},
  expireContinue: {},
  throttleBytes: { bytesPerSecond: 'number' },
  unavailable: { ms: 'number' },
};
const matchFields = ['user', 'userAgent', 'verb', 'group', 'resource', 'subresource', 'namespace', 'name'];
const countFields = ['probability', 'times', 'after', 'every'];

/** Reads a rule that came over HTTP. @throws {StatusError} `BadRequest` that names the first wrong field. */
export function parseFaultRule(body: JsonObject): FaultRule {
  const { match = {}, action, ...counts } = body;
  if (!isObject(match)) throw wrong('match', 'an object');
  for (const [field, value] of Object.entries(match)) {
    const wanted = field === 'watch' ? 'boolean' : matchFields.includes(field) ? 'string' : undefined;
    if (typeof value !== wanted) throw wrong(`match.${field}`, wanted ?? 'absent');
  }
  for (const [field, value] of Object.entries(counts)) {
    if (!countFields.includes(field)) throw wrong(field, 'absent');
    if (typeof value !== 'number') throw wrong(field, 'a number');
  }
  return { match: match, action: parseAction(action), ...counts };
}

function parseAction(action: unknown): FaultAction {
  if (!isObject(action) || typeof action['type'] !== 'string' || !Object.hasOwn(actionFields, action['type'])) {
    throw wrong('action.type', `one of ${Object.keys(actionFields).join(', ')}`);
  }
  const known = actionFields[action['type'] as FaultAction['type']];
  for (const field of Object.keys(action)) {
    if (field !== 'type' && !Object.hasOwn(known, field)) throw wrong(`action.${field}`, 'absent');
  }
  for (const [field, form] of Object.entries(known)) {
    const value = action[field];
    if (value === undefined && form.endsWith('?')) continue;
    if (typeof value !== form.replace('?', '')) throw wrong(`action.${field}`, `a ${form.replace('?', '')}`);
  }
  return action as FaultAction;
}

function wrong(field: string, wanted: string): StatusError {
  return new StatusError('BadRequest', `fault rule: ${field} must be ${wanted}`);
}
