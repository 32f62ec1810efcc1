import type { FailedRequest } from '../../kube/client/request-failure.ts';

/** Every cause, as `why` prints it; `docs/why.md` has what they mean. The files beside this one have them by subject: a check, texts, or both. */
export const causes = [
  'bound',
  'not-found',
  'no-class',
  'class-not-found',
  'static-class',
  'class-parameters',
  'waits-for-volume',
  'lost',
  'waits-for-consumer',
  'pod-unschedulable',
  'no-capacity',
  'capacity-not-published',
  'unsupported-size',
  'selected-node-gone',
  'no-topology',
  'not-handed-over',
  'no-provisioner',
  'no-leader',
  'not-ready',
  'provisioner-away',
  'secret-missing',
  'secret-content',
  'source-missing',
  'source-not-ready',
  'grant-missing',
  'feature-disabled',
  'attributes-class',
  'selector',
  'api-server',
  'rejected',
  'driver-error',
  'in-progress',
  'name-taken',
  'volume-made',
  'deleting',
  'in-use',
  'attached',
  'shared-storage',
  'other-source',
  'retained',
  'delete-error',
  'no-deleter',
] as const;

export type Cause = (typeof causes)[number];

/** How a cause shows in the texts of a provisioner's events: this sidecar and the Go sidecar record the same texts. */
export interface TextPattern {
  pattern: RegExp;
  /** What to do, without a full stop. */
  cure: string;
  /** Of what passes by itself: what to do once it has lasted too long. */
  late?: string;
  /** Whether the log of the driver says more. */
  log?: boolean;
  /** Whether it rests on words that storages use for several problems: then it begins with `Unless the error says otherwise`. */
  byWords?: boolean;
  /** Whether it is about the account of the driver, whose Secret the class may name. */
  account?: boolean;
  /** Whether it is about what the parameters of the class ask for. */
  parameters?: boolean;
}

export interface WaitPattern extends TextPattern {
  /** `stuck`: somebody must act. */
  state: 'waiting' | 'stuck';
}

/** How a cause is recognized by the error itself, or by an event that names the cause. */
export interface RequestLook {
  is: (error: FailedRequest) => boolean;
  /** Whether it counts also where the text looks like that of another cause. */
  beatsTexts: boolean;
  /** By texts; where none fits, the last counts. */
  cures: readonly TextPattern[];
}

/** How a cause shows in texts. One that does not needs no definition. */
export interface CauseDefinition {
  readonly name: Cause;
  readonly request?: RequestLook;
  /** Texts of failed attempts; the first pattern that fits, in the order of the definitions, decides. */
  readonly failures?: readonly TextPattern[];
  /** Texts of `ProvisioningWaiting` events; the first pattern that fits decides. */
  readonly waits?: readonly WaitPattern[];
}

export function defineCause(definition: CauseDefinition): CauseDefinition {
  return definition;
}

/** Why a Pod that uses a bound claim does not start. */
export interface Hint {
  /** Goes on after `Pod p, which uses it, `. */
  text: string;
  /** Without a full stop. */
  cure: string;
}
