/** A claim that uses everything a plan can hold, and a world in which its volume can be made. */
import type { PlannedVolume, VolumePlan } from '../../src/csi/create/volume-plan.ts';
import type { TopologyHook } from '../../src/csi/topology/planned-topology.ts';
import type { Plan } from '../../src/provision/recoverable.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../src/provision/objects.ts';
import { base64, driverName, makeClaim, makeClass, Rig, type RigOptions } from './csi-rig.ts';

export const sourcePath = '/api/v1/namespaces/ns1/persistentvolumeclaims/src';
export const secretPath = '/api/v1/namespaces/ns/secrets/s';
/** Labels in an order that sorting would change. */
export const zones = ['a', 'b', 'c'].map((zone) => ({ segments: { zone, rack: `r-${zone}` } }));
const topology: TopologyHook = {
  requirements: () => ({ requisite: zones, preferred: [...zones.slice(1), ...zones.slice(0, 1)] }),
};

/** A clone into a chosen node's topology, with secrets and an attributes class: every field of a plan is in use. */
export const claim: PersistentVolumeClaim = makeClaim({
  dataSource: { kind: 'PersistentVolumeClaim', name: 'src' },
  volumeAttributesClassName: 'gold',
});
export const storageClass: StorageClass = makeClass(
  {
    type: 'ssd',
    'csi.storage.k8s.io/fstype': 'xfs',
    'csi.storage.k8s.io/provisioner-secret-name': 's',
    'csi.storage.k8s.io/provisioner-secret-namespace': 'ns',
  },
  { mountOptions: ['noatime'] },
);

/** A rig in which the volume of that claim can be made; `vol-1` is its id. */
export async function startFullRig(options: Omit<RigOptions, 'plugin' | 'controller'> = {}): Promise<Rig> {
  const rig = await Rig.start({
    plugin: ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'],
    controller: ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME', 'MODIFY_VOLUME'],
    ...options,
    settings: { topology, ...options.settings },
  });
  const source = {
    metadata: { name: 'src', namespace: 'ns1', uid: 'uid-src' },
    spec: { ...makeClaim().spec, volumeName: 'pv-src' },
    status: { phase: 'Bound' },
  };
  rig.claims.set(rig.api.put(sourcePath, source) as unknown as PersistentVolumeClaim);
  rig.api.put('/api/v1/persistentvolumes/pv-src', {
    metadata: { name: 'pv-src' },
    spec: {
      csi: { driver: driverName, volumeHandle: 'vol-src' },
      claimRef: { namespace: 'ns1', name: 'src', uid: 'uid-src' },
      volumeMode: 'Filesystem',
    },
    status: { phase: 'Bound' },
  });
  rig.api.put(secretPath, {
    metadata: { name: 's', namespace: 'ns' },
    data: { user: base64('hush') },
  });
  rig.api.put('/apis/storage.k8s.io/v1/volumeattributesclasses/gold', {
    metadata: { name: 'gold' },
    driverName,
    parameters: { iops: '100' },
  });
  const content_source = { volume: { volume_id: 'vol-src' } };
  rig.driver.always('CreateVolume', { volume: { volume_id: 'vol-1', content_source } });
  return rig;
}

/** The plan of that claim's volume. */
export async function makePlan(rig: Rig): Promise<VolumePlan> {
  return (await makePlanned(rig)).plan;
}

/** The same, with what belongs to the process that has made it. */
export function makePlanned(rig: Rig): Promise<PlannedVolume> {
  return rig.provisioner.plan(rig.options(claim, storageClass, 'n1'), { signal: new AbortController().signal });
}

/** The plan as another process finds it in the cluster. */
export function storedPlan(plan: Plan): Plan {
  return JSON.parse(JSON.stringify(plan)) as Plan;
}
