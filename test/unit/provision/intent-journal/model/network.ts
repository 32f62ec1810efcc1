/** Calls of processes to the world outside: each is executed, and answered, only when a test says so. */

/** What a call came to where it was executed. */
type Outcome = { value: unknown } | { error: Error };

/** A process that makes calls. */
export interface Caller {
  /** False: it has crashed, and nothing reaches it any more. */
  alive: boolean;
  /** It is stopped: what it has sent is executed, and answers wait until it goes on. */
  paused: boolean;
}

export interface OutgoingCall<T> {
  caller: Caller;
  what: string;
  /** The caller waits this long, in milliseconds; a call is executed within this time or never. */
  limitMs: number;
  execute: () => T;
  /** What the caller gets instead of a response. */
  lost: (why: 'timeout' | 'broken') => Error;
  /** It may be executed after its connection broke. */
  survivesBreak: boolean;
  /** It goes to the backend, which does not execute it while it stalls. */
  toBackend?: boolean;
  signals?: readonly (AbortSignal | undefined)[];
}

interface Call {
  request: OutgoingCall<unknown>;
  deadlineMs: number;
  outcome: Outcome | undefined;
  /** Undefined: nobody waits for the answer any more. */
  waiting: PromiseWithResolvers<unknown> | undefined;
}

export class Network {
  nowMs = 0;
  /** The backend reads nothing: what it is sent waits, also when nobody waits for it any more. */
  isStalled = false;
  /** When it last went on. */
  wentOnAtMs = -Infinity;
  #calls: Call[] = [];

  /** Calls under way for which somebody waits. */
  get length(): number {
    return this.#prompt.length;
  }

  /** Calls for which nobody waits, and which may be executed all the same. */
  get lateLength(): number {
    return this.#late.length;
  }

  get #prompt(): Call[] {
    return this.#calls.filter((call) => !isLate(call) && !waitsForCaller(call) && !this.#isUnread(call));
  }

  get #late(): Call[] {
    return this.#calls.filter((call) => isLate(call) && !this.#isUnread(call));
  }

  #isUnread({ request, outcome }: Call): boolean {
    return this.isStalled && request.toBackend === true && outcome === undefined;
  }

  /** The backend goes on: it begins what was given up meanwhile. */
  goOn(): void {
    this.isStalled = false;
    this.wentOnAtMs = this.nowMs;
    for (const call of this.#calls.filter((each) => each.request.toBackend === true && isLate(each))) {
      call.outcome ??= outcomeOf(call.request);
      this.#remove(call);
    }
  }

  send<T>(request: OutgoingCall<T>): Promise<T> {
    const { signals = [], caller, limitMs } = request;
    const aborted = signals.find((signal) => signal?.aborted === true);
    if (aborted !== undefined) return Promise.reject(aborted.reason as Error);
    const waiting = Promise.withResolvers<unknown>();
    if (!caller.alive) return waiting.promise as Promise<T>; // it has crashed: no request leaves it
    const call: Call = { request, deadlineMs: this.nowMs + limitMs, outcome: undefined, waiting };
    this.#calls.push(call);
    for (const signal of signals) {
      signal?.addEventListener('abort', () => this.#fail(call, signal.reason as Error), { once: true });
    }
    return waiting.promise as Promise<T>;
  }

  /** The caller goes on: it gets all answers that came meanwhile. */
  deliverTo(caller: Caller): void {
    for (const call of this.#calls.filter(
      ({ request, outcome }) => request.caller === caller && outcome !== undefined,
    )) {
      this.#deliver(call);
      this.#remove(call);
    }
  }

  /** Executes a call, or delivers its answer. */
  step(pick = 0): void {
    const call = this.#prompt[pick % this.length];
    if (call === undefined) return;
    if (call.outcome === undefined) call.outcome = outcomeOf(call.request);
    else this.#deliver(call);
    if (call.waiting === undefined || !call.request.caller.alive) this.#remove(call);
  }

  /** Whether the next call is of this kind, and this far. */
  isAt(what: string, state: 'sent' | 'executed'): boolean {
    const [call] = this.#prompt;
    return call?.request.what.startsWith(what) === true && (call.outcome === undefined) === (state === 'sent');
  }

  /** Late calls are executed. */
  executeLate(): void {
    for (const call of this.#late) {
      call.outcome ??= outcomeOf(call.request);
      this.#remove(call);
    }
  }

  /** Calls for which nobody waits are never executed. */
  dropLate(): void {
    for (const call of this.#late) this.#remove(call);
  }

  /** The connection of a call breaks; it may be executed afterwards where that can happen. */
  break(pick: number, { executedLater }: { executedLater: boolean }): void {
    const call = this.#prompt[pick % this.length];
    if (call === undefined) return;
    const error = call.request.lost('broken');
    if (call.request.caller.paused) {
      call.outcome ??= { error };
      return;
    }
    this.#fail(call, error);
    if (call.outcome !== undefined || !executedLater || !call.request.survivesBreak) this.#remove(call);
  }

  /** Time has passed: what took too long ends. Late calls are executed at the last moment. */
  expire(): void {
    for (const call of this.#calls.filter(({ deadlineMs }) => deadlineMs <= this.nowMs)) {
      if (this.#isUnread(call)) {
        if (!isLate(call)) this.#fail(call, call.request.lost('timeout'));
        continue;
      }
      if (isLate(call)) call.outcome ??= outcomeOf(call.request);
      else if (call.request.caller.paused) {
        call.outcome ??= { error: call.request.lost('timeout') };
        continue;
      }
      this.#fail(call, call.request.lost('timeout'));
      this.#remove(call);
    }
  }

  toString(): string {
    const texts = this.#calls.map(({ request: { what, caller }, outcome, waiting }) => {
      const state = outcome === undefined ? 'sent' : 'executed';
      return `${what} (${state}${waiting === undefined || !caller.alive ? ', late' : ''})`;
    });
    return `calls: ${texts.join(', ') || 'none'}`;
  }

  #deliver(call: Call): void {
    const { waiting, outcome } = call;
    call.waiting = undefined;
    if (!call.request.caller.alive || outcome === undefined) return;
    if ('error' in outcome) waiting?.reject(outcome.error);
    else waiting?.resolve(outcome.value);
  }

  #fail(call: Call, error: Error): void {
    const { waiting } = call;
    call.waiting = undefined;
    if (call.request.caller.alive) waiting?.reject(error);
  }

  #remove(call: Call): void {
    this.#calls = this.#calls.filter((other) => other !== call);
  }
}

function isLate({ waiting, request }: Call): boolean {
  return waiting === undefined || !request.caller.alive;
}

function waitsForCaller({ request, outcome }: Call): boolean {
  return request.caller.paused && outcome !== undefined;
}

function outcomeOf({ execute }: OutgoingCall<unknown>): Outcome {
  try {
    return { value: structuredClone(execute()) };
  } catch (error) {
    return { error: error as Error };
  }
}
