/** The VolumeAttributesClass of a claim: whether its volume can get it, and of a bound claim whether it has it. */
import { nearestName } from '../../base/near-name.ts';
import { shellCommand } from '../../base/shell-word.ts';
import { shortValue } from '../../base/short-value.ts';
import type { PersistentVolumeClaim } from '../../provision/objects.ts';
import { type ClaimFacts, provisionerOf } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { isInTree } from '../provisioner-facts.ts';
import { durationText, lastChangeMs, quotedError } from '../texts.ts';
import { defineCause } from './cause.ts';

const missingCure = 'Create it, or recreate the claim without spec.volumeAttributesClassName';
const offCure = 'Recreate the claim without spec.volumeAttributesClassName, or enable the VolumeAttributesClass API';
const driverCure = 'Recreate the claim with a VolumeAttributesClass of its driver';

/** The claim's VolumeAttributesClass does not exist, is not served, is for another driver, or differs from its volume's. */
export const attributesClass = defineCause({
  name: 'attributes-class',
  failures: [
    { pattern: /^VAC .* does not match driver name/, cure: driverCure },
    {
      pattern: /volumeattributesclass.* is forbidden/s,
      cure: 'Permit the provisioner to get VolumeAttributesClasses: its log has the rule to add',
    },
    {
      pattern: /MODIFY_VOLUME/,
      cure: 'Recreate the claim without spec.volumeAttributesClassName: the driver supports no attributes classes',
    },
    { pattern: /was saved without its volume attributes class /, cure: offCure },
    { pattern: /volumeattributesclass/, cure: missingCure },
  ],
});

/** The binder does not bind a volume with another attributes class. */
export function checkAttributesBind({ claim, volume }: ClaimFacts): Finding | undefined {
  const existing = found(volume);
  if (existing === undefined || existing.metadata.deletionTimestamp !== undefined) return undefined;
  if ((claim.spec.volumeAttributesClassName ?? '') === (existing.spec.volumeAttributesClassName ?? ''))
    return undefined;
  return {
    state: 'stuck',
    cause: 'attributes-class',
    message: `PersistentVolume ${existing.metadata.name} exists for the claim, and kube-controller-manager has not bound them yet. Their volumeAttributesClassName differs, so they will not be bound.`,
    cure: offCure,
  };
}

export function checkAttributesClass(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, attributesClass, attributesClassNames } = facts;
  if (attributesClass === undefined) return undefined;
  const name = shortValue(claim.spec.volumeAttributesClassName ?? '');
  const driver = provisionerOf(claim, found(storageClass));
  if (attributesClass.kind === 'unreadable') return { state: 'unknown', detail: attributesClass.why };
  const held = { state: 'stuck', cause: 'attributes-class' } as const;
  if (attributesClass.kind === 'missing') {
    const near = nearestName(claim.spec.volumeAttributesClassName ?? '', found(attributesClassNames) ?? []);
    return {
      ...held,
      message: attributesClass.unserved
        ? `The claim names VolumeAttributesClass ${name}, and the API server does not serve this kind.`
        : `VolumeAttributesClass ${name} does not exist${near === undefined ? '' : `; ${near} does`}.`,
      cure: (near !== undefined && classCommand(claim, near)) || missingCure,
    };
  }
  const { driverName = '' } = attributesClass.value;
  if (driverName === driver || driver === '' || isInTree(driver)) return { state: 'ok', detail: `${name} exists` };
  return {
    ...held,
    message: `VolumeAttributesClass ${name} is for driver ${shortValue(driverName)}, and the claim is for driver ${driver}.`,
    cure: driverCure,
  };
}

/** The API server lets the class of a claim be changed. @returns undefined where no command can be written. */
function classCommand({ metadata }: PersistentVolumeClaim, name: string): string | undefined {
  const patch = JSON.stringify({ spec: { volumeAttributesClassName: name } });
  const { namespace = '' } = metadata;
  const words = ['kubectl', 'patch', 'pvc', metadata.name, '-n', namespace, '--type=merge', '-p', patch];
  const command = shellCommand(words);
  return command === undefined ? undefined : `If ${name} is meant: ${command}`;
}

/** What the external-resizer writes into the status of a claim. */
interface ModifiedStatus {
  phase?: string;
  currentVolumeAttributesClassName?: string;
  modifyVolumeStatus?: { status?: string; targetVolumeAttributesClassName?: string } | null;
  conditions?: { type: string; message?: string }[] | null;
}

/** The external-resizer has taken up a change by then, in milliseconds. */
const seenWithinMs = 2 * 60_000;

/** Of a bound claim: it has its volume, and not, or not yet, the attributes that it asks for (kubernetes-csi/external-resizer). */
export function checkAttributesModified({ claim, nowMs }: ClaimFacts): Finding | undefined {
  const { spec } = claim;
  const status: ModifiedStatus = claim.status ?? {};
  const wanted = spec.volumeAttributesClassName ?? '';
  const current = status.currentVolumeAttributesClassName ?? '';
  const modify = status.modifyVolumeStatus ?? undefined;
  if (status.phase !== 'Bound' || wanted === '' || (wanted === current && modify === undefined)) return undefined;
  const target = shortValue(modify?.targetVolumeAttributesClassName ?? wanted);
  const error = (status.conditions ?? []).find(
    ({ type }) => type === 'ModifyVolumeError' || type === 'ModifyingVolume',
  );
  const said = error?.message === undefined || error.message === '' ? '' : `: ${quotedError(error.message)}`;
  const base = `The claim is bound to PersistentVolume ${spec.volumeName ?? ''}`;
  const held = { state: 'ok', stepState: 'stuck', cause: 'bound' } as const;
  const back = current === '' ? undefined : classCommand(claim, current)?.replace(/^If .* is meant: /, '');
  switch (modify?.status) {
    case 'Pending':
      return {
        ...held,
        message: `${base}, whose attributes are not changed: VolumeAttributesClass ${target} does not exist.`,
        cure: `Create VolumeAttributesClass ${target}; the external-resizer tries again then`,
      };
    case 'Infeasible':
      return {
        ...held,
        message: `${base}, whose driver cannot give it the attributes of ${target}${said}`,
        cure: `Name a class that the driver accepts${back === undefined ? '' : `, or go back to ${shortValue(current)}: ${back}`}`,
      };
    case 'InProgress':
      if (error?.type !== 'ModifyVolumeError' && !/error/i.test(error?.message ?? '')) return undefined;
      return {
        ...held,
        message: `${base}, and the driver fails to give it the attributes of ${target}${said}`,
        cure: 'Do what it says, and see the log of the driver; the external-resizer tries again',
      };
    case undefined: {
      const ageMs = nowMs - lastChangeMs(claim);
      if (ageMs < seenWithinMs) return undefined;
      return {
        ...held,
        message: `${base}, and nobody has given it the attributes of ${target} for ${durationText(ageMs)}.`,
        cure: 'Check that the driver runs with the sidecar external-resizer, and that it supports attributes classes (capability MODIFY_VOLUME)',
      };
    }
    default:
      return undefined;
  }
}

/** Where kubectl apply keeps what was applied. */
const appliedKey = 'kubectl.kubernetes.io/last-applied-configuration';

interface AppliedClaim {
  spec?: {
    dataSource?: { kind?: string; name?: string };
    dataSourceRef?: { kind?: string; name?: string; namespace?: string };
  };
}

/** The API server drops a data source that it does not know, and the volume is empty then (Kubernetes page "Volume Populators and Data Sources"). */
export function checkSourceDropped({ claim }: ClaimFacts): Finding | undefined {
  const { spec, status, metadata } = claim;
  if (status?.phase !== 'Bound' || spec.dataSource !== undefined || spec.dataSourceRef !== undefined) return undefined;
  const applied = appliedClaim(metadata.annotations?.[appliedKey]);
  const { dataSource, dataSourceRef } = applied?.spec ?? {};
  const source: { kind?: string; name?: string; namespace?: string } = dataSourceRef ?? dataSource ?? {};
  const { kind, name, namespace } = source;
  if (kind === undefined || name === undefined) return undefined;
  const what = `${shortValue(kind)} ${namespace === undefined ? '' : `${shortValue(namespace)}/`}${shortValue(name)}`;
  return {
    ...{ state: 'ok', stepState: 'stuck', cause: 'bound' },
    message: `The claim is bound to PersistentVolume ${spec.volumeName ?? ''}, which began empty: its manifest names the data source ${what}, and the API server has dropped that.`,
    cure:
      dataSourceRef === undefined
        ? 'Recreate the claim with the source in spec.dataSourceRef: spec.dataSource takes only claims and VolumeSnapshots'
        : 'A source in another namespace needs the feature gate CrossNamespaceVolumeDataSource of the API server: enable it, or take a source of the own namespace, and recreate the claim',
  };
}

function appliedClaim(text: string | undefined): AppliedClaim | undefined {
  if (!text?.includes('"dataSource')) return undefined;
  try {
    return JSON.parse(text) as AppliedClaim;
  } catch {
    return undefined;
  }
}
