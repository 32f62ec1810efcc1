/** Flags that have no effect here, are deprecated, or mean something else. */
import { flagTable, type FlagName, type FlagSpec } from '../../flags.ts';
import type { SidecarFacts } from '../sidecar-facts.ts';
import { defineFinding, type Found } from './preflight-finding.ts';

export const flagEffects = defineFinding({
  name: 'flags',
  check(facts) {
    return [
      ...ignoredWords(facts),
      ...warned(facts),
      ...withoutEffect(facts),
      ...deprecated(facts),
      ...limits(facts),
      ...undrained(facts),
    ];
  },
});

/** Mostly the value of a boolean behind a blank, as in `--leader-election false`. */
function ignoredWords({ arguments: { ignored } }: SidecarFacts): Found[] {
  if (ignored.length === 0) return [];
  const words =
    ignored.length === 1 ? 'One argument is not a flag and is' : `${ignored.length} arguments are not flags and are`;
  return [
    {
      level: 'warning',
      message: `${words} ignored, as by the Go sidecar: the value of a boolean flag must follow "=".`,
      cure: 'Write --flag=false, or remove the argument.',
    },
  ];
}

/** What the sidecar logs about its configuration. */
function warned({ arguments: { notices } }: SidecarFacts): Found[] {
  return notices
    .filter(({ level }) => level === 'warn')
    .map(({ message, fields }) => ({
      level: 'warning',
      message: `${(fields as { flag?: string }).flag ?? 'A flag'}: ${message}.`,
    }));
}

function withoutEffect(facts: SidecarFacts): Found[] {
  const names = givenWhere(facts, ({ withoutEffect: isIgnored }) => isIgnored === true);
  if (names.length === 0) return [];
  return [{ level: 'note', message: `Accepted, but without effect here: ${names.map(spelled).join(', ')}.` }];
}

function deprecated(facts: SidecarFacts): Found[] {
  return givenWhere(facts, (spec) => spec.deprecated !== undefined).map((name) => ({
    level: 'note',
    message: `${spelled(name)} is deprecated, also in the Go sidecar: ${specOf(name).deprecated ?? ''}.`,
  }));
}

function limits({ arguments: { given, values } }: SidecarFacts): Found[] {
  return (['kube-api-qps', 'kube-api-capacity-qps'] as const)
    .filter((name) => given.has(name))
    .map((name) => ({
      level: 'note',
      message: `--${name}=${values[name]} limits the requests here, too. Without the flag there is no limit here, while the Go sidecar has one.`,
    }));
}

function undrained({ arguments: { config } }: SidecarFacts): Found[] {
  if (config?.featureGates.releaseLeaderElectionOnExit !== false) return [];
  return [
    {
      level: 'note',
      message:
        'ReleaseLeaderElectionOnExit=false: SIGTERM ends the process at once, as it ends the Go sidecar, and the Lease is held until it expires. Without this setting, calls in progress are finished first.',
    },
  ];
}

function givenWhere({ arguments: { given } }: SidecarFacts, fits: (spec: FlagSpec) => boolean): FlagName[] {
  return [...given].filter((name) => fits(specOf(name)));
}

function specOf(name: FlagName): FlagSpec {
  return flagTable[name];
}

function spelled(name: FlagName): string {
  return name === 'v' ? '-v' : `--${name}`;
}
