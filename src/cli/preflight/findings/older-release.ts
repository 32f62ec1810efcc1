/** What the releases of the Go sidecar since the one that runs have changed: this one is as v6.4. */
import { isBefore, releaseText } from '../go-sidecar.ts';
import type { SidecarFacts } from '../sidecar-facts.ts';
import { defineFinding, type Found } from './preflight-finding.ts';

export const olderRelease = defineFinding({
  name: 'release',
  check(facts) {
    return [...topology(facts), ...attributesClasses(facts), ...volumeModes(facts), ...newer(facts)];
  },
});

function topology({ release, arguments: { values, config } }: SidecarFacts): Found[] {
  if (release === undefined || !isBefore(release, { major: 5, minor: 0 })) return [];
  if (values['feature-gates'].has('Topology') || config?.nodeDeployment) return [];
  return [
    {
      level: 'warning',
      message: `Topology is off by default in the Go sidecar ${releaseText(release)}, and on since v5.0 and here: if the driver reports VOLUME_ACCESSIBILITY_CONSTRAINTS, new volumes get a node affinity, and list and watch on nodes and csinodes are needed.`,
      cure: '--feature-gates=Topology=false keeps it off.',
    },
  ];
}

function attributesClasses({ release, arguments: { values } }: SidecarFacts): Found[] {
  if (release === undefined || !isBefore(release, { major: 6, minor: 0 })) return [];
  if (values['feature-gates'].has('VolumeAttributesClass')) return [];
  return [
    {
      level: 'note',
      message: `VolumeAttributesClass is off by default in the Go sidecar ${releaseText(release)}, and on since v6.0 and here: the class that a claim names is passed to the driver, which must report MODIFY_VOLUME.`,
      cure: '--feature-gates=VolumeAttributesClass=false keeps it off.',
    },
  ];
}

function volumeModes({ release, arguments: { given } }: SidecarFacts): Found[] {
  if (release === undefined || !isBefore(release, { major: 4, minor: 0 })) return [];
  if (given.has('prevent-volume-mode-conversion')) return [];
  return [
    {
      level: 'note',
      message: `--prevent-volume-mode-conversion is off by default in the Go sidecar ${releaseText(release)}, and on since v4.0 and here: a snapshot is not restored with another volume mode.`,
      cure: '--prevent-volume-mode-conversion=false keeps it off.',
    },
  ];
}

function newer({ release }: SidecarFacts): Found[] {
  if (release === undefined || isBefore(release, { major: 6, minor: 5 })) return [];
  return [
    {
      level: 'note',
      message: `The Go sidecar here is ${releaseText(release)}; this one is compared with v6.4. What came later may be missing here.`,
    },
  ];
}
