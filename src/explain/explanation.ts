/** What an explanation consists of: the steps of a claim or volume, and the first that it waits for. */
import type { Cause } from './causes/cause.ts';
import { rulesToRead } from './missing-right.ts';

/**
 * - `bound`: the claim has its volume; of a volume: nothing is to be deleted.
 * - `waiting`: it proceeds by itself, or as soon as a Pod uses it.
 * - `stuck`: somebody must act.
 * - `unknown`: what was needed to decide could not be read.
 */
export type Verdict = 'bound' | 'waiting' | 'stuck' | 'unknown';

export interface Step {
  /** Its short name, such as `class`. */
  step: string;
  state: 'ok' | 'waiting' | 'stuck' | 'unknown';
  /** One line. */
  detail: string;
}

/** The output of `why -o json`. */
export interface Explanation {
  /** `NAMESPACE/CLAIM` or `pv/NAME`. */
  object: string;
  verdict: Verdict;
  /** Null when the verdict is `unknown` because something could not be read. */
  cause: Cause | null;
  message: string;
  /** What to do. It may say that nothing is to be done; empty where there is nothing to say. */
  cure: string;
  steps: Step[];
}

/** What one step found. */
export type Finding =
  | { state: 'ok'; detail: string }
  /** `ends`: no later step means anything without this one. */
  | { state: 'unknown'; detail: string; ends?: boolean }
  /** This is what holds it. */
  | Holding;

/** The first thing that holds a claim or volume; also that nothing does. */
export interface Holding {
  state: 'ok' | 'waiting' | 'stuck' | 'unknown';
  cause: Cause;
  /** What its step shows, where that differs: of a bound claim whose Pod does not start. */
  stepState?: Step['state'];
  /** One line for the list of steps. Default: the message. */
  detail?: string;
  message: string;
  cure?: string;
  /** It presumes that every step before is ok: if one is unknown, so is this. */
  presumes?: boolean;
  /** Claims for which this one may wait, the likeliest first: the end of the way says more than this. */
  next?: readonly Link[];
}

/** From a claim to another one that it waits for. */
export interface Link {
  namespace: string;
  name: string;
  /** Without a full stop, as in `It waits for its source ns/src`. */
  way: string;
}

/** An explanation before the links that lead on from it are followed. */
export interface Walked extends Explanation {
  next?: readonly Link[];
}

/** One thing that may hold an object, or that shows that it does not. @returns undefined where it does not apply. */
export type Check<Facts> = (facts: Facts) => Finding | undefined;

/** A step with its checks. */
export interface CheckedStep<Facts> {
  step: string;
  /** The first one that says something decides the step. */
  checks: readonly Check<Facts>[];
}

/** Checks the steps in their order up to the first that the object waits for. */
export function walk<Facts>(object: string, facts: Facts, checked: readonly CheckedStep<Facts>[]): Walked {
  const steps: Step[] = [];
  for (const { step, checks } of checked) {
    const found = firstFinding(facts, checks);
    if (found === undefined) continue;
    if ('cause' in found && found.presumes === true && steps.some(({ state }) => state === 'unknown')) {
      steps.push({ step, state: 'unknown', detail: found.message });
    } else if ('cause' in found) {
      const { state, cause, message, cure = '', next } = found;
      steps.push({ step, state: found.stepState ?? state, detail: found.detail ?? message });
      const verdict = state === 'ok' ? 'bound' : state;
      return { object, verdict, cause, message, cure, steps, ...(next !== undefined && { next }) };
    } else {
      steps.push({ step, state: found.state, detail: found.detail });
      if (found.state === 'unknown' && found.ends === true) break;
    }
  }
  return { object, ...nothingFound(steps), steps };
}

function firstFinding<Facts>(facts: Facts, checks: readonly Check<Facts>[]): Finding | undefined {
  for (const check of checks) {
    const found = check(facts);
    if (found !== undefined) return found;
  }
  return undefined;
}

function nothingFound(steps: readonly Step[]): Pick<Explanation, 'verdict' | 'cause' | 'message' | 'cure'> {
  const unread = steps.filter(({ state }) => state === 'unknown').map(({ detail }) => detail);
  const rules = rulesToRead(unread);
  return {
    verdict: 'unknown',
    cause: null,
    message: `What it waits for cannot be seen: ${unread.join('; ')}`,
    cure:
      rules.length === 0
        ? 'Run it again once that can be read; docs/why.md lists all permissions that it needs'
        : `Have these rules added to a role of yours, and run it again; docs/why.md lists all: ${rules.join(', ')}`,
  };
}

/** The exit code of `why`: 0 bound or nothing to delete, 1 waiting, 2 stuck, 3 unknown. */
export const exitCodeOf: Readonly<Record<Verdict, number>> = { bound: 0, waiting: 1, stuck: 2, unknown: 3 };
