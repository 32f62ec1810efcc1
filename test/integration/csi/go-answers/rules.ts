/** Single rules: what ours make of an input, in the words of the files. */
import type { status } from '@grpc/grpc-js';
import { silentLogger } from '../../../../src/base/logger.ts';
import { capacityText, formatQuantity, parseQuantity, quantityBytes } from '../../../../src/base/quantity.ts';
import { CsiCallError } from '../../../../src/csi/call-error.ts';
import { driverParameters } from '../../../../src/csi/class-parameters.ts';
import { createVolumeError } from '../../../../src/csi/error-policy.ts';
import { driverMigration } from '../../../../src/csi/migration/driver-migration.ts';
import { inTreePlugins } from '../../../../src/csi/migration/in-tree-plugins.ts';
import { expandTemplate, type SecretKind, secretReference } from '../../../../src/csi/secrets/secret-reference.ts';
import { isGranted } from '../../../../src/csi/sources/data-source.ts';
import { fnv1, hashInput } from '../../../../src/csi/topology/topology.ts';
import { nodeAffinity } from '../../../../src/csi/create/persistent-volume.ts';
import { volumeName } from '../../../../src/csi/create/validate-claim.ts';
import {
  allowsSource,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type ReferenceGrant,
  type StorageClass,
} from '../../../../src/provision/objects.ts';
import { type Nodes, segmentsOf, type Settings, states, storeOf, topologyOf } from './calls.ts';

type Rule = (given: never, go: never) => object;

/** By file. */
export const rules: Readonly<Record<string, Rule>> = {
  affinity: ({ Topology }: { Topology: Record<string, string>[] }) => ({
    a: nodeAffinity(Topology.map((segments) => ({ segments }))),
  }),
  bytes: ({ Bytes }: { Bytes: string }) => ({ text: capacityText(BigInt(Bytes)) }),
  class: ({ Class }: { Class: StorageClass }, { class: translated }: { class: StorageClass | null }) =>
    orError(() => {
      const plugin = inTreePlugins.find(({ name }) => name === Class.provisioner);
      // nobody reads the provisioner of a translated class; of some plugins it stays
      return { class: { ...plugin?.translateClass(Class), provisioner: translated?.provisioner } };
    }),
  errstate: ({ RpcCode, RpcMessage, Settings }: ErrorCase) => ({
    state: states[createVolumeError(new CsiCallError(RpcCode, RpcMessage), { mayReschedule: Settings.Strict }).state],
  }),
  expand: ({ Text, Params = {} }: { Text: string; Params?: Record<string, string> }) =>
    orError(() => ({ text: expandTemplate(Text, new Map(Object.entries(Params))) })),
  granted: ({ Grants, Claim }: { Grants: ReferenceGrant[]; Claim: PersistentVolumeClaim }) => granted(Grants, Claim),
  hash: ({ Name }: { Name: string }) => {
    const { text, index } = hashInput(Name);
    return { sum: (fnv1(text) + index) % 2 ** 32 };
  },
  params: ({ Params = {} }: { Params?: Record<string, string> }) =>
    orError(
      () => ({ params: driverParameters(Params) }),
      (text) => text.replace('failed to strip CSI Parameters of prefixed keys: ', ''), // the files have the inner error
    ),
  quantity: ({ Text }: { Text: string }, { text: kept }: { text?: string }) => {
    try {
      const text = formatQuantity(parseQuantity(Text));
      // Go keeps many texts as they came; the canonical one has the same value
      const same = kept === Text && parseQuantity(text).nanos === parseQuantity(Text).nanos;
      return { text: same ? kept : text, value: String(quantityBytes(Text)) };
    } catch {
      return { bad: true };
    }
  },
  secret: ({ Kind, Params = {}, Name, Claim }: SecretCase) =>
    orError(() => {
      const { namespace = '', name, annotations } = Claim.metadata;
      const context = { volumeName: Name, claim: { namespace, name, annotations } };
      return { ref: secretReference(Kind, Params, context, silentLogger) };
    }),
  toCsi: ({ p, Volume }: TranslationCase) => orError(() => csiForm({ pv: migrationOf(p).toCsi(Volume) })),
  toInTree: ({ p, Volume }: TranslationCase) => orError(() => ({ pv: migrationOf(p).toInTree(Volume) })),
  volname: ({ Name, Settings: { Prefix, UUIDLength } }: { Name: string; Settings: Settings }) =>
    orError(() => ({ name: volumeName(Prefix, Name, UUIDLength) })),
};

interface ErrorCase {
  RpcCode: status;
  RpcMessage: string;
  Settings: Settings;
}

interface SecretCase {
  Kind: SecretKind;
  Params?: Record<string, string>;
  Name: string;
  Claim: PersistentVolumeClaim;
}

interface TranslationCase {
  p: { driver: string };
  Volume: PersistentVolume;
}

export interface TopologyCase {
  Settings: Settings;
  Claim: PersistentVolumeClaim;
  Class: StorageClass;
  Steps: (Nodes & { SelectedNode: string })[];
}

/** Of the CSI form of a plugin's volume what counts when it is deleted: ours uses that form for nothing else. */
export function csiForm({ pv, error }: { pv?: PersistentVolume | null; error?: string }): object {
  if (!pv) return { error };
  const { csi, claimRef, nodeAffinity, storageClassName } = pv.spec;
  const { driver, volumeHandle, nodeStageSecretRef, fsType } = csi ?? {};
  const source = { driver, volumeHandle, nodeStageSecretRef, fsType };
  return { pv: { metadata: pv.metadata, spec: { claimRef, storageClassName, csi: source } }, affinity: nodeAffinity };
}

/** The requirement of the first step, or its error. */
export async function firstStep({ Settings, Claim, Class, Steps: [step] }: TopologyCase): Promise<object> {
  if (step === undefined) throw new Error('a case without steps');
  const asked = {
    claimName: Claim.metadata.name,
    allowedTopologies: Class.allowedTopologies,
    selectedNodeName: step.SelectedNode,
  };
  const [answer] = await Promise.allSettled([topologyOf(Settings, step).requirements(asked)]);
  return orError(() => {
    if (answer.status === 'rejected') throw answer.reason;
    return answer.value === undefined ? {} : { r: segmentsOf(answer.value) };
  });
}

function migrationOf(plugin: { driver?: string; driverName?: string } | undefined) {
  const migration = driverMigration(plugin?.driver ?? plugin?.driverName ?? '');
  if (migration === undefined) throw new TypeError('a plugin that nobody knows');
  return migration;
}

function granted(
  grants: ReferenceGrant[],
  { metadata: { namespace = '', name }, spec }: PersistentVolumeClaim,
): object {
  const { kind = '', name: source = '', apiGroup, namespace: other } = spec.dataSourceRef ?? {};
  const wanted = { kind, name: source, apiGroup: apiGroup ?? '', namespace: other ?? '' };
  const own = grants.filter(({ metadata }) => metadata.namespace === namespace);
  // in the own namespace nobody asks
  const ok =
    wanted.namespace === namespace
      ? own.some((grant) => allowsSource(grant, namespace, wanted))
      : isGranted(storeOf(grants), namespace, wanted);
  if (ok) return { ok };
  const error = `accessing ${other}/${source} of ${kind} dataSource from ${namespace}/${name} isn't allowed`;
  return { ok: false, error };
}

function orError(attempt: () => object, textOf: (text: string) => string = (text) => text): object {
  try {
    return attempt();
  } catch (error) {
    if (!(error instanceof Error) || error instanceof TypeError) throw error;
    return { error: textOf(error.message) };
  }
}
