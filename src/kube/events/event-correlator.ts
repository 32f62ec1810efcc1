/**
 * Correlates events before they are written, as client-go does: equal ones become one with a count, many that differ only
 * in their message become an aggregate, and a flood is dropped. Nothing is sent from here.
 */
import { hash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { LruMap } from '../lru-map.ts';
import type { KubeObject, ObjectReference } from '../kube-object.ts';
import { TokenBucket } from '../client/token-bucket.ts';

/** `Warning` where an operator may have to act. */
export type EventType = 'Normal' | 'Warning';

/** core/v1 Event in JSON. */
export interface CoreEvent extends KubeObject {
  involvedObject: ObjectReference;
  type: EventType;
  reason: string;
  message: string;
  count: number;
  /** RFC 3339, whole seconds. */
  firstTimestamp: string;
  lastTimestamp: string;
  source: { component: string };
  reportingComponent: string;
  reportingInstance: string;
}

/** Whether an event stands for several with different messages. */
export function isAggregate({ message }: CoreEvent): boolean {
  return message.startsWith(aggregatePrefix);
}

/** What to do with an event: nothing (`drop`), a POST (`create`) or a PATCH of an earlier one (`patch`). */
export interface EventDecision {
  action: 'create' | 'patch' | 'drop';
  event: CoreEvent;
  /** Key of `remember` for the server's response. */
  key: string;
}

/** Max groups, counts and budgets kept. */
const cacheSize = 4096;
/** A group without an event for this long starts over. */
const groupLifeMs = 600_000;
/** From this many different messages on, the events of a group become one aggregate. */
const maxMessages = 10;
/** Begins the message of an aggregate, as in client-go. */
const aggregatePrefix = '(combined from similar events): ';
/** The longest message that is itself part of a key, in characters; of longer ones the hash is. */
const maxKeyChars = 1024;
/** Rate limit for the events of one object and type. */
const spamLimit = { burst: 25, qps: 1 / 300 };

/** Rate limits for Warnings and repetitions: those about objects of one namespace, of all namespaces together, and about cluster-scoped objects. */
const namespaceLimit = { burst: 300, qps: 5 };
const allLimit = { burst: 1000, qps: 50 };
const clusterLimit = { burst: 1000, qps: 50 };
/** This many are always allowed from a namespace without others, however many come from the rest. */
const quietBurst = 20;

interface Seen {
  name: string;
  count: number;
  firstTimestamp: string;
}

export class EventCorrelator {
  readonly #clock: Clock;
  readonly #groups = new LruMap<{ messages: Set<string>; lastMs: number }>(cacheSize);
  readonly #seen = new LruMap<Seen>(cacheSize);
  readonly #budgets = new LruMap<TokenBucket>(cacheSize);
  readonly #namespaces = new LruMap<TokenBucket>(cacheSize);
  readonly #all: TokenBucket;
  readonly #newName: (about: ObjectReference) => string;

  /** @param options.newName - makes the name of an aggregate. */
  constructor(options: { clock: Clock; newName: (about: ObjectReference) => string }) {
    this.#clock = options.clock;
    this.#newName = options.newName;
    this.#all = new TokenBucket({ ...allLimit, clock: options.clock });
  }

  /** @param fresh - an event with count 1. */
  decide(fresh: CoreEvent): EventDecision {
    const about = `${fresh.source.component} ${objectText(fresh.involvedObject)} ${fresh.type}`;
    const { event, key } = this.#aggregate(fresh, `${about} ${fresh.reason}`);
    const counted = this.#count(event, key);
    // counted before the budget is checked, so a suppressed event later shows as a jump of the count
    if (!this.#bucket(this.#budgets, about, spamLimit).tryTake()) return { action: 'drop', event: counted, key };
    const action = counted.count > 1 ? 'patch' : 'create';
    if (this.#isAffordable(counted, action)) return { action, event: counted, key };
    if (action === 'create') this.#seen.delete(key); // the next one is created, not patched
    return { action: 'drop', event: counted, key };
  }

  /** The server stored the event: later equal ones patch it. */
  remember(key: string, response: { name: string; count: number; firstTimestamp: string }): void {
    this.#seen.set(key, response);
  }

  #aggregate(event: CoreEvent, group: string): { event: CoreEvent; key: string } {
    const nowMs = this.#clock.monotonicMs();
    let record = this.#groups.get(group);
    if (record === undefined || nowMs - record.lastMs > groupLifeMs) record = { messages: new Set(), lastMs: nowMs };
    record.lastMs = nowMs;
    const words = keyOf(event.message);
    record.messages.add(words);
    this.#groups.set(group, record);
    if (record.messages.size < maxMessages) return { event, key: `${group} ${words}` };
    for (const message of record.messages) {
      record.messages.delete(message); // any one: the group must stay just below the limit
      break;
    }
    const aggregate: CoreEvent = {
      ...event,
      metadata: { ...event.metadata, name: this.#newName(event.involvedObject) },
      message: `${aggregatePrefix}${event.message}`,
      reportingComponent: '',
    };
    return { event: aggregate, key: group };
  }

  #count(event: CoreEvent, key: string): CoreEvent {
    const seen = this.#seen.get(key);
    const counted: CoreEvent =
      seen === undefined
        ? event
        : {
            ...event,
            metadata: { ...event.metadata, name: seen.name },
            count: seen.count + 1,
            firstTimestamp: seen.firstTimestamp,
          };
    this.#seen.set(key, { name: counted.metadata.name, count: counted.count, firstTimestamp: counted.firstTimestamp });
    return counted;
  }

  /**
   * Whether the rate limits allow the event. When thousands of claims fail, the events that are written are to explain
   * as many claims as possible: repetitions leave half of a namespace's burst to new Warnings. Other new events take
   * nothing from it, and are dropped only while it is used up.
   */
  #isAffordable({ involvedObject: { namespace = '' }, type }: CoreEvent, action: 'create' | 'patch'): boolean {
    const limit = namespace === '' ? clusterLimit : namespaceLimit;
    const budget = this.#bucket(this.#namespaces, namespace, limit);
    const isNew = action === 'create';
    if (type === 'Normal' && isNew) return budget.has(1);
    if (!budget.has(isNew ? 1 : limit.burst / 2)) return false;
    const isQuiet = namespace === '' || budget.has(limit.burst - quietBurst + 1);
    if (!isQuiet && !(this.#all.has(isNew ? 1 : allLimit.burst / 2) && this.#all.tryTake())) return false;
    return budget.tryTake();
  }

  #bucket(buckets: LruMap<TokenBucket>, key: string, limit: { burst: number; qps: number }): TokenBucket {
    let bucket = buckets.get(key);
    if (bucket === undefined) {
      bucket = new TokenBucket({ ...limit, clock: this.#clock });
      buckets.set(key, bucket);
    }
    return bucket;
  }
}

/** The key of a message in the caches: a hash of a long one, since many of those would fill the memory. */
function keyOf(message: string): string {
  return message.length <= maxKeyChars ? message : hash('sha256', message);
}

function objectText({ kind, namespace, name, uid, apiVersion }: ObjectReference): string {
  return JSON.stringify([kind, namespace, name, uid, apiVersion]);
}
