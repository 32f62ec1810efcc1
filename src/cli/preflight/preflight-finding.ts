/** What `preflight` says of a container; `docs/preflight.md` has all kinds. */
import type { SidecarFacts } from './sidecar-facts.ts';

/** In the order in which they are reported. */
export const findingNames = [
  'command',
  'arguments',
  'exec',
  'user',
  'architecture',
  'missing-right',
  'rights-unknown',
  'no-journal',
  'conditional-rights',
  'memory',
  'cpu',
  'two-at-once',
  'shared-host-name',
  'every-node',
  'capacity',
  'same-driver',
  'class-driver',
  'several-provisioners',
  'probe',
  'release',
  'timeout',
  'grace-period',
  'flags',
  'seccomp',
  'shared-token',
  'journal-writers',
] as const;

export type FindingName = (typeof findingNames)[number];

/**
 * - `must`: something that works with the Go sidecar does not work until it is changed, or nothing works either way.
 * - `warning`: it works as before; something should be changed.
 * - `note`: what is different, with nothing to do.
 */
export type FindingLevel = 'must' | 'warning' | 'note';

export const findingLevels: readonly FindingLevel[] = ['must', 'warning', 'note'];

/** A rule of a role. */
export interface MissingRule {
  /** Undefined: of a ClusterRole with a ClusterRoleBinding. */
  namespace: string | undefined;
  /** It is for one namespace, whose name may be unknown. */
  isNamespaced: boolean;
  apiGroup: string;
  resource: string;
  verbs: readonly string[];
  feature: string;
}

/** What a check has found. */
export interface Found {
  level: FindingLevel;
  /** Sentences, with a full stop. */
  message: string;
  /** What to do, with a full stop; empty where nothing is to be done. */
  cure?: string;
  rules?: readonly MissingRule[];
  /** The rules are needed only where something is used. */
  isConditional?: boolean;
}

/** Finds what is to be said of one container. @throws {ManifestError} */
export type Check = (facts: SidecarFacts) => Found | readonly Found[] | undefined;
