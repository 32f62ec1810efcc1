import { createHash } from 'node:crypto';
import { v4 as uuid } from 'uuid';
import { untilAborted } from '../../base/abort.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { maxTextChars, shortValue } from '../../base/short-value.ts';
import { warningLogger } from '../../base/text-logger.ts';
import { activeSpan, type Span, withinSpan } from '../../base/tracing.ts';
import { AlreadyExistsError, ApiError, ForbiddenError, NotFoundError } from '../client/api-error.ts';
import type { KubeClient } from '../client/kube-client.ts';
import { isSubdomainName, type ObjectReference, type Resource } from '../kube-object.ts';
import { type CoreEvent, EventCorrelator, type EventType, isAggregate } from './event-correlator.ts';

export const events: Resource = {
  group: '',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  namespaced: true,
  verbs: ['create', 'patch'],
};

/** The client of an `EventRecorder`, and the source of its events. */
export interface EventRecorderOptions {
  client: KubeClient;
  /** Source of the events: `<driver>_<host>_<uuid>` for a provisioner; shown as "From" by kubectl describe. */
  component: string;
  /** Default: the machine's own time. */
  clock?: Clock;
  /** Default: warnings and errors, to standard error. */
  logger?: Logger;
  /** Uniform in [0, 1); default `Math.random`. */
  random?: () => number;
}

/** Max events waiting to be sent; further ones are dropped and logged. Enough for those of a thousand claims a second that give way. */
const bufferSize = 10_000;
/** Max characters of their messages, together. */
const bufferChars = 16_000_000;
/** How long an event gives way to requests that people wait for, in milliseconds. */
const yieldMs = 5000;
/** How often dropped events are logged, in milliseconds. */
const dropReportMs = 60_000;
/** Max events being sent. One after another they could not keep up with a hundred claims a second. */
const maxInFlight = 8;
/** The same while closing: up to 5 s of events may have given way to other requests. */
const maxInFlightAtEnd = 32;
/** Max tries of one event over a broken connection, and the pause between them. */
const maxTries = 12;
const pauseMs = 10_000;
/** How long closing waits for the events still to be sent, in milliseconds. */
const drainMs = 5000;

interface Waiting {
  readonly event: CoreEvent;
  /** The work that it is about, where that is traced. */
  readonly span: Span | undefined;
  /** When it was recorded, in monotonic milliseconds. */
  readonly sinceMs: number;
}

/** Writes core/v1 events in the background, those about one object in their order; each gives way to other requests for up to 5 s. */
export class EventRecorder implements Recorder, AsyncDisposable {
  readonly #options: EventRecorderOptions & Required<Pick<EventRecorderOptions, 'clock' | 'logger'>>;
  readonly #correlator: EventCorrelator;
  readonly #waiting: Waiting[] = [];
  #waitingChars = 0;
  readonly #stop = new AbortController();
  /** Nothing more can be sent: closing took too long, or the transport is fenced. */
  readonly #ended: AbortSignal;
  /** Events being sent, by the object they are about: the next one about it may be a PATCH of this one. */
  readonly #sending = new Map<string, Promise<void>>();
  #lastNanoseconds = 0n;
  #closed = false;
  #dropped = 0;
  #dropReportAtMs = -Infinity;

  constructor(options: EventRecorderOptions) {
    const { clock = systemClock, logger = warningLogger } = options;
    this.#options = { ...options, clock, logger };
    this.#ended = AbortSignal.any([this.#stop.signal, options.client.fenced]);
    this.#correlator = new EventCorrelator({ clock, newName: (about) => this.#newName(about) });
  }

  event(
    about: ObjectReference,
    type: EventType,
    reason: string,
    whole: string,
    { once = false, logged = false, annotations }: RecordOptions = {},
  ): void {
    const { logger } = this.#options;
    const message = shortValue(whole, maxTextChars);
    const fields = { object: objectText(about), kind: about.kind, type, reason, message };
    if (this.#closed) {
      logger.error(fields, 'Event dropped, shutting down');
      return;
    }
    if (this.#waiting.length >= bufferSize || this.#waitingChars + message.length > bufferChars) {
      this.#reportDrop(fields);
      return;
    }
    if (!logged) logger.info(fields, 'Event occurred');
    const name = once ? deterministicName(about, reason, message) : this.#newName(about);
    this.#waitingChars += message.length;
    this.#waiting.push({
      event: this.#newEvent(name, about, { type, reason, message, annotations }),
      span: activeSpan(),
      sinceMs: this.#options.clock.monotonicMs(),
    });
    this.#sendWaiting();
  }

  /** Takes no more events, and waits up to 5 s for those still to be sent, less once the transport is fenced. Safe to repeat. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#sendWaiting();
    const timer = this.#options.clock.after(drainMs, () =>
      this.#stop.abort(new Error('events are dropped at shutdown')),
    );
    try {
      await untilAborted(this.#sent(), this.#ended).catch(() => undefined);
    } finally {
      timer.cancel();
      this.#stop.abort(new Error('the event recorder is closed'));
    }
  }

  /** Events are dropped by the thousand: a line for each would slow down a process that already cannot keep up. */
  #reportDrop(fields: object): void {
    const { clock, logger } = this.#options;
    this.#dropped++;
    const nowMs = clock.monotonicMs();
    if (nowMs < this.#dropReportAtMs) return;
    this.#dropReportAtMs = nowMs + dropReportMs;
    logger.error({ ...fields, dropped: this.#dropped }, 'Event dropped, too many are waiting');
  }

  #sendWaiting(): void {
    while (this.#sending.size < (this.#closed ? maxInFlightAtEnd : maxInFlight) && !this.#ended.aborted) {
      const index = this.#waiting.findIndex(({ event }) => !this.#sending.has(laneOf(event.involvedObject)));
      const [next] = index < 0 ? [] : this.#waiting.splice(index, 1);
      if (next === undefined) return;
      this.#waitingChars -= next.event.message.length;
      const { event, span } = next;
      const lane = laneOf(event.involvedObject);
      const sent = (span === undefined ? this.#send(next) : withinSpan(span, () => this.#send(next))).finally(() => {
        this.#sending.delete(lane);
        this.#sendWaiting();
      });
      this.#sending.set(lane, sent);
    }
  }

  /** Resolves once no event is being sent any more. */
  async #sent(): Promise<void> {
    while (this.#sending.size > 0) await Promise.all(this.#sending.values());
  }

  async #send({ event: fresh, sinceMs }: Waiting): Promise<void> {
    const { clock, logger, random = Math.random } = this.#options;
    const { action, event, key } = this.#correlator.decide(fresh);
    if (action === 'drop') return;
    for (let tries = 1; ; tries++) {
      try {
        const response = await this.#write(action, event, () => (this.#closed ? 0 : sinceMs + yieldMs));
        if (response === undefined) return;
        this.#correlator.remember(key, {
          name: response.metadata.name,
          count: response.count,
          firstTimestamp: response.firstTimestamp,
        });
        return;
      } catch (error) {
        const fields = { err: error, object: objectText(event.involvedObject), reason: event.reason };
        if (this.#ended.aborted) return;
        if (error instanceof ApiError || error instanceof TypeError) {
          const expected =
            error instanceof AlreadyExistsError ||
            (error instanceof ApiError && error.hasCause('NamespaceTerminating'));
          const reported = error instanceof ForbiddenError && !error.isAdmission; // by `MissingPermissions`
          logger[expected ? 'trace' : reported ? 'debug' : 'error'](fields, 'The API server rejected an event');
          return;
        }
        if (tries >= maxTries || this.#closed) {
          logger.error(fields, 'An event could not be sent');
          return;
        }
        const waitMs = tries === 1 ? pauseMs * random() : pauseMs;
        await clock.sleep(waitMs, { signal: this.#ended }).catch(() => undefined);
      }
    }
  }

  /** @returns the event as it is stored; undefined when that is as it was sent. */
  async #write(
    action: 'create' | 'patch',
    event: CoreEvent,
    yieldsUntilMs: () => number,
  ): Promise<CoreEvent | undefined> {
    const { client } = this.#options;
    const options = { signal: this.#stop.signal, yieldsUntilMs };
    if (action === 'create') return client.createUnread(events, event, options);
    try {
      const { count, lastTimestamp, message } = event;
      // an aggregate has those of its newest event: null removes those of earlier ones
      const { annotations = isAggregate(event) ? null : undefined } = event.metadata;
      return await client.patch<CoreEvent>(
        events,
        event.metadata,
        {
          type: 'strategic',
          body: { count, lastTimestamp, message, ...(annotations !== undefined && { metadata: { annotations } }) },
        },
        options,
      );
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      return client.createUnread(events, event, options); // it expired on the server, or was never written
    }
  }

  #newEvent(
    name: string,
    about: ObjectReference,
    { annotations, ...content }: Pick<CoreEvent, 'type' | 'reason' | 'message'> & Pick<RecordOptions, 'annotations'>,
  ): CoreEvent {
    const now = new Date(this.#options.clock.wallMs()).toISOString().replace(/\.\d+Z$/, 'Z');
    const { component } = this.#options;
    const namespace = about.namespace === undefined || about.namespace === '' ? 'default' : about.namespace;
    return {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace, ...(annotations && { annotations }) },
      involvedObject: about,
      ...content,
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component },
      reportingComponent: component,
      reportingInstance: '',
    };
  }

  /**
   * Object name and the time in hexadecimal nanoseconds, which sorts and never repeats; else a UUID. The clock counts
   * milliseconds: the rest is random, so that two recorders do not choose the same name for one object.
   */
  #newName(about: ObjectReference): string {
    const { clock, random = Math.random } = this.#options;
    const now = BigInt(Math.trunc(clock.wallMs())) * 1_000_000n + BigInt(Math.floor(random() * 1_000_000));
    this.#lastNanoseconds = now > this.#lastNanoseconds ? now : this.#lastNanoseconds + 1n;
    const name = `${about.name ?? ''}.${this.#lastNanoseconds.toString(16)}`;
    return isSubdomainName(name) ? name : uuid();
  }
}

/** The same name for the same event from any instance: the API server stores it once. */
function deterministicName({ uid, namespace, name = '' }: ObjectReference, reason: string, message: string): string {
  const hash = createHash('sha256').update(JSON.stringify([uid, namespace, name, reason, message]));
  const digest = hash.digest('hex').slice(0, 32);
  return isSubdomainName(`${name}.${digest}`) ? `${name}.${digest}` : digest;
}

function laneOf(about: ObjectReference): string {
  return about.uid ?? objectText(about);
}

function objectText({ namespace, name = '' }: ObjectReference): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** How an event is recorded. */
export interface RecordOptions {
  /**
   * Do not record it again while the API server still has it, recorded by this process, an earlier one or another instance. Default
   * false.
   */
  once?: boolean;
  /** The caller logs it, so that the event is not logged, too. Default false. */
  logged?: boolean;
  /** For programs that read the event. Default: none. */
  annotations?: Record<string, string> | undefined;
}

/** Records events about objects. Best effort: it never blocks, throws or fails an operation. */
export interface Recorder {
  /**
   * @param about - kind, apiVersion, namespace, name, uid and resourceVersion of the object the event is about.
   * @param reason - UpperCamelCase, short: a machine reads it.
   * @param message - one line for people, at most 1,024 bytes; secrets never. A message above 65,536 characters is
   * truncated.
   */
  event(about: ObjectReference, type: EventType, reason: string, message: string, options?: RecordOptions): void;
}
