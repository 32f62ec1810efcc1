/** The data source of a claim: whether it exists and fits. Of its own namespace, or one that is granted. */
import { nameList } from '../../base/name-list.ts';
import { nearestName } from '../../base/near-name.ts';
import { shortValue } from '../../base/short-value.ts';
import type { PersistentVolumeClaim } from '../../provision/objects.ts';
import { type ClaimFacts, provisionerOf } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import type { SourceReference } from '../source-facts-reader.ts';
import { defineCause } from './cause.ts';
import { modeText, sizeCure, sizeProblem, snapshotProblem, type SourceProblem } from './snapshot.ts';

/** Namespaces in a message. */
const maxNamed = 3;
const missingCure = 'Create the source, or recreate the claim with another one';

/** The data source of the claim does not exist. */
export const sourceMissing = defineCause({
  name: 'source-missing',
  failures: [
    {
      pattern: /error getting (PVC|snapshot) |^the PVC source (not found for PVC|does not belong) /,
      cure: missingCure,
    },
  ],
});

export function checkSourceExists({
  claim,
  source,
  sourceClaim,
  snapshot,
  snapshotNames,
  otherNamespaces,
}: ClaimFacts): Finding | undefined {
  const reading = sourceClaim ?? snapshot;
  if (source === undefined || reading === undefined) return undefined;
  if (reading.kind === 'unreadable') return { state: 'unknown', detail: reading.why };
  if (reading.kind === 'found') return undefined;
  const held = { state: 'stuck', cause: 'source-missing' } as const;
  if (reading.unserved) {
    return {
      ...held,
      message: `The data source of the claim is ${sourceName(source)}, and the cluster does not have this kind.`,
      cure: 'Install the CRDs of kubernetes-csi/external-snapshotter and its snapshot-controller',
    };
  }
  const elsewhere = found(otherNamespaces) ?? [];
  // a name that many have says nothing
  if (elsewhere.length > 0 && elsewhere.length <= maxNamed) {
    return {
      ...held,
      message: `${sourceName(source)}, the data source of the claim, does not exist; there is one of that name in namespace ${nameList(elsewhere.toSorted(), maxNamed)}.`,
      cure: elsewhereCure(source, claim),
    };
  }
  const near = nearestName(source.name, found(snapshotNames) ?? []);
  return {
    ...held,
    message: `${sourceName(source)}, the data source of the claim, does not exist${near === undefined ? '' : `; ${near} does`}.`,
    cure: near === undefined ? missingCure : `If ${near} is meant, recreate the claim with it; else create the source`,
  };
}

function elsewhereCure({ kind, namespace }: SourceReference, claim: PersistentVolumeClaim): string {
  const meant = 'If that one is meant,';
  if (namespace !== claim.metadata.namespace)
    return `${meant} recreate the claim with its namespace in dataSourceRef; else create the source`;
  if (kind === 'PersistentVolumeClaim')
    return `${meant} create the new claim there, as a claim is cloned in its own namespace; else create the source`;
  return `${meant} create the new claim there, as a snapshot is restored in its own namespace; or an administrator creates a VolumeSnapshotContent with the same snapshotHandle and deletionPolicy Retain, and a VolumeSnapshot for it here. Else create the source`;
}

export function sourceName({ kind, namespace, name }: SourceReference): string {
  return `${shortValue(kind)} ${namespace}/${shortValue(name)}`;
}

const modeCure = 'Recreate the claim with the volumeMode of its source: a clone must have the same';
const otherCure = 'Recreate the claim with another source';

/** The data source of the claim is not bound, not ready, being deleted, does not fit, or needs a volume populator. */
export const sourceNotReady = defineCause({
  name: 'source-not-ready',
  failures: [
    { pattern: /must have the same volume mode for cloning/, cure: modeCure },
    {
      pattern: new RegExp(modeText),
      cure: 'Recreate the claim with the volumeMode of its source; or an administrator sets the annotation snapshot.storage.kubernetes.io/allow-volume-mode-change=true on the VolumeSnapshotContent that the message names',
    },
    {
      pattern: /must be greater than or equal in size|is less than the size .* for the source/,
      cure: sizeCure,
    },
    {
      pattern: /error getting snapshotcontent /,
      cure: 'See whether this VolumeSnapshotContent exists. If it does, the provisioner could not read it: usually a ClusterRole of it lacks the rule {apiGroups: ["snapshot.storage.k8s.io"], resources: ["volumesnapshotcontents"], verbs: ["get"]}; its log ("Reading the snapshot content failed") has the reason',
    },
    {
      pattern: /is not handled by CSI driver of StorageClass/,
      cure: 'Recreate the claim with a StorageClass of the driver of its source, or with another source',
    },
    {
      pattern: /Only CSI plugin can provision a claim with a datasource/,
      cure: 'Recreate the claim with a StorageClass of a CSI driver: a plugin that is part of Kubernetes makes empty volumes only',
    },
    {
      pattern: /storageclass cannot be empty/,
      cure: 'Recreate the claim that the message names with spec.storageClassName: the annotation alone does not do for a clone',
    },
    {
      pattern: /claim in dataSource not bound or invalid/,
      cure: 'Recreate the claim with a source that is bound to a volume of the same CSI driver',
    },
    {
      pattern: /^error getting handle for DataSource .*(not bound$|is not Ready$|must have a status of Bound)/s,
      cure: 'Have the source bound or ready: csi-provisioner why, and kubectl describe, say what it waits for',
    },
    {
      pattern: /^error getting handle for DataSource /,
      cure: 'Recreate the claim with a source that fits its driver, size and volume mode',
    },
  ],
});

export function checkSourceReady(facts: ClaimFacts): Finding | undefined {
  const { source, sourceClaim, snapshot } = facts;
  if (source === undefined || (sourceClaim ?? snapshot) === undefined) return undefined;
  const problem = claimProblem(facts) ?? snapshotProblem(facts);
  if (problem === undefined) return { state: 'ok', detail: `${sourceName(source)} is ready` };
  const { text, ...rest } = problem;
  return {
    ...rest,
    cause: 'source-not-ready',
    message: `${sourceName(source)}, the data source of the claim, ${text}.`,
  };
}

/** Why a claim cannot be cloned. */
function claimProblem({ claim, sourceClaim, sourceVolume, storageClass }: ClaimFacts): SourceProblem | undefined {
  const source = found(sourceClaim);
  if (source === undefined) return undefined;
  const { namespace = '', name, deletionTimestamp } = source.metadata;
  const phase = source.status?.phase ?? 'new';
  if (deletionTimestamp !== undefined) return { state: 'stuck', text: 'is being deleted', cure: otherCure };
  if (phase !== 'Bound') {
    return {
      state: 'stuck',
      text: `is ${phase} and not Bound`,
      cure: `Have it bound first: csi-provisioner why ${namespace}/${name}`,
      next: [{ namespace, name, way: `It waits for its data source, claim ${name}` }],
    };
  }
  const volume = found(sourceVolume);
  const [requested, own] = [claim, source].map(({ spec }) => spec.volumeMode ?? 'Filesystem');
  if (requested !== own) {
    const text = `has volumeMode ${own ?? ''}, and the claim requests ${requested ?? ''}`;
    return { state: 'stuck', text, cure: modeCure };
  }
  const driver = provisionerOf(claim, found(storageClass));
  const ofDriver = volume?.spec.csi?.driver;
  if (volume !== undefined && driver !== '' && ofDriver !== driver) {
    return {
      state: 'stuck',
      text: `has a volume of ${ofDriver === undefined ? 'no CSI driver' : `driver ${shortValue(ofDriver)}`}, and the claim is for driver ${shortValue(driver)}: no driver clones volumes of another`,
      cure:
        ofDriver === undefined
          ? otherCure
          : `Recreate the claim with a StorageClass whose provisioner is ${shortValue(ofDriver)}: kubectl get storageclass`,
    };
  }
  const ref = volume?.spec.claimRef;
  if (volume !== undefined && (ref?.uid !== source.metadata.uid || volume.status?.phase !== 'Bound')) {
    return {
      state: 'stuck',
      text: `names PersistentVolume ${volume.metadata.name}, which is ${volume.status?.phase ?? 'new'} for claim ${ref?.namespace ?? ''}/${ref?.name ?? ''}`,
      cure: otherCure,
    };
  }
  return sizeProblem(claim, source.spec.resources?.requests?.['storage']);
}
