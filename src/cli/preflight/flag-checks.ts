/** Checks of flags, and of what the releases of the Go sidecar since the one that runs have changed: this one is as v6.4. */
import { flagTable, type FlagName, type FlagSpec } from '../flags.ts';
import { isBefore, releaseText } from './find-sidecars.ts';
import type { Check, Found } from './preflight-finding.ts';
import type { SidecarFacts } from './sidecar-facts.ts';

export const flagChecks = {
  release(facts) {
    return [topology(facts), attributesClasses(facts), volumeModes(facts), newer(facts)].filter(
      (each) => each !== undefined,
    );
  },

  /** Flags that have no effect here, are deprecated, or mean something else. */
  flags(facts) {
    return [
      ...ignoredWords(facts),
      ...warned(facts),
      ...withoutEffect(facts),
      ...deprecated(facts),
      ...limits(facts),
      ...undrained(facts),
    ];
  },
} satisfies Record<string, Check>;

function topology({ release, arguments: { values, config } }: SidecarFacts): Found | undefined {
  if (!isBefore(release, { major: 5, minor: 0 })) return undefined;
  if (values['feature-gates'].has('Topology') || config?.nodeDeployment) return undefined;
  return {
    level: 'warning',
    message: `Topology is off by default in the Go sidecar ${releaseText(release)}, and on since v5.0 and here: if the driver reports VOLUME_ACCESSIBILITY_CONSTRAINTS, new volumes get a node affinity, and list and watch on nodes and csinodes are needed.`,
    cure: '--feature-gates=Topology=false keeps it off.',
  };
}

function attributesClasses({ release, arguments: { values } }: SidecarFacts): Found | undefined {
  if (!isBefore(release, { major: 6, minor: 0 })) return undefined;
  if (values['feature-gates'].has('VolumeAttributesClass')) return undefined;
  return {
    level: 'note',
    message: `VolumeAttributesClass is off by default in the Go sidecar ${releaseText(release)}, and on since v6.0 and here: the class that a claim names is passed to the driver, which must report MODIFY_VOLUME.`,
    cure: '--feature-gates=VolumeAttributesClass=false keeps it off.',
  };
}

function volumeModes({ release, arguments: { given } }: SidecarFacts): Found | undefined {
  if (!isBefore(release, { major: 4, minor: 0 })) return undefined;
  if (given.has('prevent-volume-mode-conversion')) return undefined;
  return {
    level: 'note',
    message: `--prevent-volume-mode-conversion is off by default in the Go sidecar ${releaseText(release)}, and on since v4.0 and here: a snapshot is not restored with another volume mode.`,
    cure: '--prevent-volume-mode-conversion=false keeps it off.',
  };
}

function newer({ release }: SidecarFacts): Found | undefined {
  if (release === undefined || isBefore(release, { major: 6, minor: 5 })) return undefined;
  return {
    level: 'note',
    message: `The Go sidecar here is ${releaseText(release)}; this one is compared with v6.4. What came later may be missing here.`,
  };
}

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
