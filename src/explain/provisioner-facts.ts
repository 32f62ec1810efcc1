/** Signs of a provisioner in the cluster, and whether it works. No object says who serves a name, so several are read. */
import { type Lease, leases } from '../kube/election/lease-record.ts';
import type { KubeObject } from '../kube/kube-object.ts';
import type { Cause } from './causes/cause.ts';
import { type ClusterEvent, csiDrivers, type CsiNode, csiNodes } from './cluster-objects.ts';
import { type ClusterReader, found, type Reading } from './cluster-reader.ts';
import type { Finding } from './explanation.ts';
import { durationText } from './texts.ts';

export interface ProvisionerFacts {
  /** As claims ask for it: the name of a CSI driver, or of another provisioner. */
  name: string;
  /** CSIDriver of the name. */
  driver: Reading<KubeObject>;
  /** Leases of the election of its leader, in whatever namespace. */
  leases: Reading<Lease[]>;
  /** Read only where there is neither CSIDriver nor Lease. */
  csiNodes?: Reading<CsiNode[]> | undefined;
  /** The names of all CSIDrivers; likewise. */
  drivers?: Reading<string[]> | undefined;
}

/** In-tree plugins are part of kube-controller-manager. */
export function isInTree(provisioner: string): boolean {
  return provisioner.startsWith('kubernetes.io/');
}

/** Up to five requests; none for a plugin that is part of kube-controller-manager. */
export async function readProvisioner(name: string, reader: ClusterReader): Promise<ProvisionerFacts | undefined> {
  if (isInTree(name)) return undefined;
  const [driver, elections] = await Promise.all([reader.exists(csiDrivers, { name }), readLeases(name, reader)]);
  const unseen = driver.kind === 'missing' && found(elections)?.length === 0;
  if (!unseen) return { name, driver, leases: elections };
  const [registered, drivers] = await Promise.all([
    reader.list<CsiNode>(csiNodes),
    reader.pick<KubeObject, string>(csiDrivers, (each) => each.metadata.name),
  ]);
  return { name, driver, leases: elections, csiNodes: registered, drivers };
}

/** The sidecars name the Lease after the driver with dashes for all but letters and digits; other provisioners keep dots. */
async function readLeases(provisioner: string, reader: ClusterReader): Promise<Reading<Lease[]>> {
  const names = new Set([
    provisioner
      .replaceAll(/[^a-zA-Z0-9-]/g, '-')
      .replace(/-$/, '-X')
      .toLowerCase(),
    provisioner.replaceAll('/', '-').toLowerCase(),
  ]);
  let found: Reading<Lease[]> = { kind: 'found', value: [] };
  for (const name of names) {
    found = await reader.list<Lease>(leases, { fieldSelector: `metadata.name=${name}` });
    if (found.kind !== 'found' || found.value.length > 0) return found;
  }
  return found;
}

/** How far clocks of nodes may be apart before a Lease counts as expired, in milliseconds. */
const clockSkewMs = 30_000;
/** Of a provisioner of which there is no sign: one without a CSI driver has neither a CSIDriver nor a CSINode. */
export const seeItsPod =
  'If the provisioner is installed, check that its Pod runs, and see its log: where a permission is missing, there is neither a Lease nor an event.';

/** How long ago an event still proves that a provisioner works: the longest pause between attempts, and some. */
export const signOfLifeMs = 6 * 60_000;
/** For Leases without a duration, which other programs may have created. */
const usualLeaseSeconds = 15;

export interface Serving {
  provisioner: ProvisionerFacts;
  nowMs: number;
  /** About the object. */
  events: Reading<ClusterEvent[]> | undefined;
  /** When an event of the provisioner about the object was recorded last. */
  lastSignMs?: number | undefined;
  /** The causes to name: claims and volumes have different ones. */
  nobody: Cause;
  away: Cause;
}

/** Says who serves the name, as far as the cluster shows it. */
export function checkServing(serving: Serving): Finding {
  const { provisioner, nobody } = serving;
  const { name, driver, leases } = provisioner;
  const elections = found(leases) ?? [];
  if (elections.length > 0) return ofElection(elections, serving);
  if (isRecent(serving)) return { state: 'ok', detail: `${name} works: its last event is recent` };
  if (leases.kind === 'unreadable') return { state: 'unknown', detail: leases.why };
  if (driver.kind === 'unreadable') return { state: 'unknown', detail: driver.why };
  const registered = found(provisioner.csiNodes)?.filter((node) =>
    node.spec?.drivers?.some((each) => each.name === name),
  );
  if (driver.kind === 'found' || (registered?.length ?? 0) > 0) {
    return { state: 'ok', detail: `${name} is installed; it has no Lease, so which Pod provisions cannot be seen` };
  }
  if (provisioner.csiNodes?.kind === 'unreadable') return { state: 'unknown', detail: provisioner.csiNodes.why };
  if (serving.lastSignMs !== undefined) {
    return { state: 'ok', detail: `${name} recorded events; it has no Lease and no CSIDriver` };
  }
  if (serving.events?.kind === 'unreadable') return { state: 'unknown', detail: serving.events.why };
  return {
    state: 'stuck',
    cause: nobody,
    message: `There is no sign of a provisioner for ${name}: no CSIDriver, no Lease and no event, and no node has registered it.`,
    cure: `${seeItsPod} Otherwise install the driver with its provisioner, or recreate the class with the right provisioner: it cannot be edited`,
  };
}

function ofElection(elections: readonly Lease[], serving: Serving): Finding {
  const { provisioner, nowMs, away } = serving;
  const newest = elections.toSorted((a, b) => renewedMs(a) - renewedMs(b)).at(-1);
  const { namespace = '', name } = newest?.metadata ?? { name: '' };
  const holder = newest?.spec?.holderIdentity ?? '';
  const agoMs = newest === undefined ? Infinity : nowMs - renewedMs(newest);
  const lifeMs = 1000 * (newest?.spec?.leaseDurationSeconds ?? usualLeaseSeconds) + clockSkewMs;
  if (holder !== '' && agoMs <= lifeMs) return { state: 'ok', detail: `${provisioner.name}: ${holder} leads` };
  const worksWithout = isRecent(serving) && nowMs - (serving.lastSignMs ?? 0) < agoMs - lifeMs;
  if (worksWithout) return { state: 'ok', detail: `${provisioner.name} works: its last event is recent` };
  const what = holder === '' ? 'nobody holds' : `${holder} has not renewed`;
  const since = Number.isFinite(agoMs) ? ` for ${durationText(agoMs)}` : '';
  return {
    state: agoMs <= lifeMs ? 'waiting' : 'stuck', // a standby takes over in a moment
    cause: away,
    message: `The provisioner ${provisioner.name} has no leader: ${what} Lease ${namespace}/${name}${since}.`,
    cure: `Check the Pods of the provisioner, usually in namespace ${namespace}: do they run, and what do they log? ${leaseCure(namespace)}`,
  };
}

/** @param namespace - of the Lease, where that is known. */
export function leaseCure(namespace = ''): string {
  const where = namespace === '' ? 'the namespace of the Lease' : `namespace ${namespace}`;
  return `A process that is not permitted to use leases cannot become leader: its log ("Not permitted to use a resource") and an event on its Pod then name the rule to add; get, create and update on leases.coordination.k8s.io are needed in ${where}`;
}

function isRecent({ lastSignMs, nowMs }: Serving): boolean {
  return lastSignMs !== undefined && nowMs - lastSignMs < signOfLifeMs;
}

function renewedMs({ spec }: Lease): number {
  return Date.parse(spec?.renewTime ?? spec?.acquireTime ?? '') || 0;
}
