/** What happens to claims when calls go wrong between the sidecar and the driver, or the driver ends amid them. */
import type { Bench } from './bench.ts';
import type { Check, Findings } from './check.ts';
import type { KubernetesBench } from './kubernetes-bench.ts';
import { CheckSkipped } from './outcome.ts';

const part = 'kubernetes';

export const faultChecks: readonly Check[] = [
  {
    id: 'lost-create',
    title: 'a volume whose response is lost is found by the repeat',
    section: 'Timeouts',
    part,
    needs: ['claim', 'create-repeat'],
    run: (bench) => spoiledCreate(bench, 'CreateVolume:drop:1'),
  },
  {
    id: 'late-create',
    title: 'a volume whose response comes too late is found by the repeat',
    section: 'Timeouts',
    part,
    needs: ['claim', 'create-repeat'],
    run: (bench) => spoiledCreate(bench, `CreateVolume:late=${bench.options.timeoutMs + 500}ms:1`),
  },
  {
    id: 'cut-create',
    title: 'a volume is found by the repeat when the connection ends before its response',
    section: 'Timeouts',
    part,
    needs: ['claim', 'create-repeat'],
    run: (bench) => spoiledCreate(bench, 'CreateVolume:cut:1'),
  },
  {
    id: 'lost-delete',
    title: 'a deletion whose response is lost is repeated with OK',
    section: 'Timeouts',
    part,
    needs: ['claim', 'delete-repeat'],
    run: (bench) => spoiledDelete(bench, 'DeleteVolume:drop:1'),
  },
  {
    id: 'restart',
    title: 'a driver that was killed knows its volumes when it runs again',
    section: 'CreateVolume',
    part,
    needs: ['create', 'create-repeat', 'delete'],
    run: restart,
  },
  {
    id: 'kill-create',
    title: 'a volume is created although the driver is killed during the call',
    section: 'Timeouts',
    part,
    needs: ['claim', 'restart'],
    run: (bench) => spoiledCreate(bench, 'CreateVolume:kill:1'),
  },
  {
    id: 'kill-delete',
    title: 'a volume is deleted although the driver is killed during the call',
    section: 'Timeouts',
    part,
    needs: ['claim', 'restart'],
    run: (bench) => spoiledDelete(bench, 'DeleteVolume:kill:1'),
  },
];

async function spoiledCreate(bench: Bench, fault: string): Promise<void> {
  const kubernetes = await bench.kubernetes();
  await spoiled(kubernetes, fault, async () => {
    const bound = await kubernetes.bound(kubernetes.claim());
    kubernetes.spoil();
    await kubernetes.remove(bound);
  });
}

async function spoiledDelete(bench: Bench, fault: string): Promise<void> {
  const kubernetes = await bench.kubernetes();
  const bound = await kubernetes.bound(kubernetes.claim());
  await spoiled(kubernetes, fault, () => kubernetes.remove(bound));
}

/** @throws {CheckSkipped} when nothing was spoiled, so that nobody relies on it. */
async function spoiled(kubernetes: KubernetesBench, fault: string, work: () => Promise<void>): Promise<void> {
  const before = kubernetes.faults.length;
  kubernetes.spoil(fault);
  try {
    await work();
  } finally {
    kubernetes.spoil();
  }
  const lines = kubernetes.faults.slice(before).filter((line) => line.startsWith('Fault:'));
  const failure = lines.find((line) => line.includes('no process of this user'));
  if (failure !== undefined || lines.length === 0)
    throw new CheckSkipped(failure ?? `the fault ${fault} did not happen`);
}

async function restart(bench: Bench, findings: Findings): Promise<void> {
  if (bench.restartDriver === undefined)
    throw new CheckSkipped('the driver cannot be restarted: --driver-command is not given');
  const { id, volume, request } = await bench.create();
  await bench.restartDriver();
  const { volume: again = {} } = bench.ok(await bench.tryCreate(request));
  if (again.volume_id !== id)
    findings.fail(`after a restart, CreateVolume for the name of ${id} returned ${again.volume_id ?? 'no volume_id'}`);
  if ((again.capacity_bytes ?? '0') !== (volume.capacity_bytes ?? '0')) {
    findings.fail(
      `after a restart, capacity_bytes is ${again.capacity_bytes ?? '0'} instead of ${volume.capacity_bytes ?? '0'}`,
    );
  }
  await bench.delete(id);
}
