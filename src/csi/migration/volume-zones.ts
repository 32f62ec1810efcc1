/** Zones and regions of volumes: under the driver's keys, and under those that in-tree plugins shared. */
import { compareBytes } from '../../base/compare-bytes.ts';
import type { NodeSelectorRequirement, NodeSelectorTerm, PersistentVolume } from '../../provision/objects.ts';
import type { VolumeTopology } from './in-tree-plugin.ts';

/** Well-known labels (Kubernetes, "Well-Known Labels, Annotations and Taints"). */
export const zoneLabel = 'topology.kubernetes.io/zone';
const regionLabel = 'topology.kubernetes.io/region';
export const betaZoneLabel = 'failure-domain.beta.kubernetes.io/zone';
const betaRegionLabel = 'failure-domain.beta.kubernetes.io/region';

/** Separates the zones of a volume that is in several, in one label. */
export const zoneSeparator = '__';

/** The region of a zone. @throws {Error} when it is not known. */
export type RegionOfZone = (zone: string) => string;

/** Zones under one key of the driver; with `regionOf` volumes of the plugin also say their region. */
export function zoneTopology(zoneKey: string, regionOf?: RegionOfZone): VolumeTopology {
  return {
    toInTree: (volume) => {
      const renamed = renameKeys(volume, { [zoneKey]: zoneLabel });
      const placed = regionOf === undefined ? renamed : withRegions(renamed, regionOf);
      const regions = valuesOf(placed, regionLabel);
      return withLabels(placed, {
        ...(regionOf !== undefined && regions.length === 1 && { [regionLabel]: regions[0] }),
        [zoneLabel]: joined(valuesOf(placed, zoneLabel)),
      });
    },
    toCsi: (volume) => {
      const labels = labelsInUse(volume);
      const renamed = renameKeys(volume, { [labels.zone]: zoneKey, [labels.region]: regionLabel });
      return valuesOf(volume, labels.zone).length > 0 ? renamed : withZonesOfLabel(renamed, labels.zone, zoneKey);
    },
  };
}

/** Zones and regions under keys of the driver, of which volumes of the plugin carry one each as labels. */
export function zoneAndRegionTopology(keys: { zone: string; region: string }): VolumeTopology {
  return {
    toInTree: (volume) => {
      const renamed = renameKeys(volume, { [keys.zone]: zoneLabel, [keys.region]: regionLabel });
      return withLabels(renamed, {
        [zoneLabel]: valuesOf(renamed, zoneLabel)[0],
        [regionLabel]: valuesOf(renamed, regionLabel)[0],
      });
    },
    toCsi: (volume) => {
      const labels = labelsInUse(volume);
      const renamed = renameKeys(volume, { [labels.zone]: keys.zone, [labels.region]: keys.region });
      if (valuesOf(volume, labels.zone).length > 0) return renamed;
      return withZonesOfLabel(withZonesOfLabel(renamed, labels.zone, keys.zone), labels.region, keys.region);
    },
  };
}

/** The zones that a volume of the plugin names in its label, if any. */
function zonesOfLabel(volume: PersistentVolume, label: string): string[] {
  const zones = (volume.metadata.labels?.[label] ?? '').split(zoneSeparator).map((zone) => zone.trim());
  return [...new Set(zones.filter((zone) => zone !== ''))].sort(compareBytes);
}

/**
 * The one region of all zones.
 *
 * @throws {Error} when there is no zone, or when they are in several regions.
 */
export function regionOfZones(zones: readonly string[], regionOf: RegionOfZone): string {
  const regions = [...new Set(zones.map(regionOf))];
  const [region] = regions;
  if (region === undefined) throw new Error('no region: the volume names no zone');
  if (regions.length > 1) throw new Error(`the zones ${zones.join(', ')} are in several regions`);
  return region;
}

/** Volumes of plugins have today's labels or, if old, the ones before them; the node affinity decides. */
function labelsInUse(volume: PersistentVolume): { zone: string; region: string } {
  const current = { zone: zoneLabel, region: regionLabel };
  const older = { zone: betaZoneLabel, region: betaRegionLabel };
  if (valuesOf(volume, zoneLabel).length > 0) return current;
  if (valuesOf(volume, betaZoneLabel).length > 0) return older;
  const { labels = {} } = volume.metadata;
  return labels[zoneLabel] === undefined && labels[betaZoneLabel] !== undefined ? older : current;
}

function mapTerms(volume: PersistentVolume, replace: (term: NodeSelectorTerm) => NodeSelectorTerm): PersistentVolume {
  const required = volume.spec.nodeAffinity?.required;
  if (required === undefined) return volume;
  const nodeAffinity = {
    ...volume.spec.nodeAffinity,
    required: { ...required, nodeSelectorTerms: required.nodeSelectorTerms.map(replace) },
  };
  return { ...volume, spec: { ...volume.spec, nodeAffinity } };
}

function renameKeys(volume: PersistentVolume, names: Record<string, string>): PersistentVolume {
  const renamed = ({ key, ...rest }: NodeSelectorRequirement): NodeSelectorRequirement => ({
    key: (Object.hasOwn(names, key) ? names[key] : undefined) ?? key,
    ...rest,
  });
  return mapTerms(volume, ({ matchExpressions, ...term }) => ({
    ...term,
    ...(matchExpressions !== undefined && { matchExpressions: matchExpressions.map(renamed) }),
  }));
}

/** Each term that names no region gets the one that its zones are in. */
function withRegions(volume: PersistentVolume, regionOf: RegionOfZone): PersistentVolume {
  return mapTerms(volume, (term) => {
    const { matchExpressions = [] } = term;
    if (matchExpressions.some(({ key }) => key === regionLabel)) return term;
    const region = regionOfZones(valuesOfTerm(term, zoneLabel), regionOf);
    return { ...term, matchExpressions: [...matchExpressions, isIn(regionLabel, [region])] };
  });
}

/** Volumes made before there was node affinity say where they are in a label alone. */
function withZonesOfLabel(volume: PersistentVolume, label: string, key: string): PersistentVolume {
  const zones = zonesOfLabel(volume, label);
  if (zones.length === 0) return volume;
  const terms = volume.spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const placed = (terms.length === 0 ? [{}] : terms).map((term: NodeSelectorTerm) => ({
    ...term,
    matchExpressions: [...(term.matchExpressions ?? []), isIn(key, zones)],
  }));
  return { ...volume, spec: { ...volume.spec, nodeAffinity: { required: { nodeSelectorTerms: placed } } } };
}

function isIn(key: string, values: string[]): NodeSelectorRequirement {
  return { key, operator: 'In', values };
}

function valuesOfTerm({ matchExpressions = [] }: NodeSelectorTerm, key: string): string[] {
  return matchExpressions.flatMap((each) => (each.key === key ? (each.values ?? []) : []));
}

/** All values of a key, each once, sorted. */
function valuesOf(volume: PersistentVolume, key: string): string[] {
  const terms = volume.spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  return [...new Set(terms.flatMap((term) => valuesOfTerm(term, key)))].sort(compareBytes);
}

function joined(zones: readonly string[]): string | undefined {
  return zones.length === 0 ? undefined : zones.join(zoneSeparator);
}

/** Labels that are there already stay. */
function withLabels(volume: PersistentVolume, labels: Record<string, string | undefined>): PersistentVolume {
  const known = Object.entries(labels).filter((entry): entry is [string, string] => entry[1] !== undefined);
  if (known.length === 0) return volume;
  const { metadata } = volume;
  return { ...volume, metadata: { ...metadata, labels: { ...Object.fromEntries(known), ...metadata.labels } } };
}
