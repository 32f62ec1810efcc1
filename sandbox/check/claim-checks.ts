/** What happens to claims in Kubernetes, with the sidecar between them and the driver. */
import { isDeepStrictEqual } from 'node:util';
import { resources, type StorageCapacity } from '../control-plane/objects.ts';
import type { Bench } from './bench.ts';
import type { Check, Findings } from './check.ts';
import type { ClaimWishes, KubernetesBench } from './kubernetes-bench.ts';
import { makeSnapshotObjects } from './kubernetes-objects.ts';

const part = 'kubernetes';

export const claimChecks: readonly Check[] = [
  {
    id: 'claim',
    title: 'a claim gets a volume, which is deleted with it',
    section: 'Kubernetes, immediate binding',
    part,
    needs: ['create', 'delete'],
    run: (bench) => cycle(bench),
  },
  {
    id: 'claim-late',
    title: 'a pod on each node gets a volume that is accessible there',
    section: 'Kubernetes, late binding',
    part,
    needs: ['claim'],
    run: late,
  },
  {
    id: 'claim-block',
    title: 'a claim gets a block volume',
    section: 'Kubernetes, volumeMode',
    part,
    needs: ['claim', 'create-block'],
    run: (bench) => cycle(bench, { block: true }),
  },
  {
    id: 'claim-shared',
    title: 'a claim gets a volume for many nodes',
    section: 'Kubernetes, ReadWriteMany',
    part,
    needs: ['claim', 'create-shared'],
    run: (bench) => cycle(bench, { accessMode: 'ReadWriteMany' }),
  },
  {
    id: 'claim-single-writer',
    title: 'a claim gets a volume for one pod',
    section: 'Kubernetes, ReadWriteOncePod',
    part,
    needs: ['claim', 'create-single-writer'],
    run: (bench) => cycle(bench, { accessMode: 'ReadWriteOncePod' }),
  },
  {
    id: 'claim-attributes',
    title: 'a claim gets a volume with mutable parameters',
    section: 'Kubernetes, VolumeAttributesClass',
    part,
    needs: ['claim', 'modify'],
    run: (bench) => cycle(bench, { attributesClass: 'check' }),
  },
  {
    id: 'claim-clone',
    title: 'a claim gets a clone of the volume of another claim',
    section: 'Kubernetes, dataSource',
    part,
    needs: ['claim', 'clone'],
    async run(bench) {
      const kubernetes = await bench.kubernetes();
      const source = await kubernetes.bound(kubernetes.claim());
      await cycle(bench, { dataSource: { kind: 'PersistentVolumeClaim', name: source.name } });
      await kubernetes.remove(source);
    },
  },
  {
    id: 'claim-restore',
    title: 'a claim gets a volume restored from a snapshot',
    section: 'Kubernetes, dataSource',
    part,
    needs: ['claim', 'restore'],
    run: restore,
  },
  {
    id: 'claim-capacity',
    title: 'there is a CSIStorageCapacity for each topology segment',
    section: 'Kubernetes, storage capacity',
    part,
    needs: ['claim', 'capacity'],
    run: storageCapacity,
  },
];

/** A claim from beginning to end. */
async function cycle(bench: Bench, wishes: ClaimWishes = {}): Promise<void> {
  const kubernetes = await bench.kubernetes();
  await kubernetes.remove(await kubernetes.bound(kubernetes.claim(wishes)));
}

async function late(bench: Bench, findings: Findings): Promise<void> {
  const kubernetes = await bench.kubernetes();
  for (const node of kubernetes.nodes) await onNode(kubernetes, node, findings);
}

async function onNode(kubernetes: KubernetesBench, node: string, findings: Findings): Promise<void> {
  const name = kubernetes.claimOfPod(node);
  const bound = await kubernetes.bound(name);
  if (kubernetes.admits(bound.volume, node)) {
    await kubernetes.scheduled(name, `the pod on ${node} with its volume is not scheduled`);
  } else {
    findings.fail(
      `the volume for a pod on ${node} cannot be used there: ${JSON.stringify(bound.volume.spec.nodeAffinity)}`,
    );
  }
  kubernetes.removePod(name);
  await kubernetes.remove(bound);
}

async function restore(bench: Bench): Promise<void> {
  const kubernetes = await bench.kubernetes();
  const source = await kubernetes.bound(kubernetes.claim());
  const snapshot = await bench.snapshot(source.handle);
  const name = makeSnapshotObjects(kubernetes.client, {
    driver: source.volume.spec.csi?.driver ?? '',
    claim: source.name,
    volumeHandle: source.handle,
    snapshotHandle: snapshot.id,
    sizeBytes: bench.options.sizeBytes,
  });
  await cycle(bench, { dataSource: { kind: 'VolumeSnapshot', name, apiGroup: 'snapshot.storage.k8s.io' } });
  bench.ok(await bench.tryDeleteSnapshot(snapshot.id));
  await kubernetes.remove(source);
}

async function storageCapacity(bench: Bench, findings: Findings): Promise<void> {
  const kubernetes = await bench.kubernetes();
  const found = () => {
    const objects = kubernetes.client.list(resources.capacities).map((each) => each as StorageCapacity);
    const own = objects.filter(
      ({ storageClassName, capacity }) => storageClassName === 'check-late' && capacity !== undefined,
    );
    return own.length > 0 ? own : undefined;
  };
  const objects = await kubernetes.until(found, 'the class check-late gets no CSIStorageCapacity');
  for (const segments of bench.topology ? bench.knownSegments : []) {
    const has = objects.some(({ nodeTopology }) => isDeepStrictEqual(nodeTopology?.matchLabels, segments));
    if (!has) findings.fail(`there is no CSIStorageCapacity for ${JSON.stringify(segments)}`);
  }
}
