/** What a cause is known by in the events of a provisioner: this sidecar and the Go sidecar record the same texts. */
export interface TextMeaning {
  pattern: RegExp;
  /** What to do, without a full stop. */
  cure: string;
}

export interface WaitMeaning extends TextMeaning {
  /** `stuck`: somebody must act. */
  state: 'waiting' | 'stuck';
}

/** Why a claim has no volume, or why a volume stays. */
export interface CauseDefinition<Name extends string = string> {
  /** As in the output of `why`, and in docs/why.md. */
  readonly name: Name;
  /** Texts of failed attempts; the first pattern that fits, in the order of `causes`, decides. */
  readonly failures?: readonly TextMeaning[];
  /** Texts of `ProvisioningWaiting` events; the first pattern that fits decides. */
  readonly waits?: readonly WaitMeaning[];
}

export function defineCause<const Name extends string>(definition: CauseDefinition<Name>): CauseDefinition<Name> {
  return definition;
}
