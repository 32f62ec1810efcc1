/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** Drivers whose plugins, nodes and times differ from those of a single socket. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { CoreV1Api, KubeConfig, StorageV1Api } from '@kubernetes/client-node';
import { eventually } from '../../support/eventually.ts';
import { HostpathHere } from '../hostpath/hostpath-process.ts';
import { SandboxProgram } from './sandbox-program.ts';

const zone = 'example.com/zone';
const resources = { requests: { storage: '1Gi' } };
const lateClaim = {
  metadata: { name: 'photos' },
  spec: { storageClassName: 'sandbox-late', accessModes: ['ReadWriteOnce'], resources },
};
const anyPod = {
  metadata: { name: 'pod' },
  spec: {
    containers: [{ name: 'main', image: 'none' }],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'photos' } }],
  },
};
const podInSouth = { ...anyPod, spec: { ...anyPod.spec, nodeSelector: { [zone]: 'south' } } };

async function temporaryHome(t: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'plugins-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return path.join(folder, 'driver');
}

/** Waits for the banner of the sandbox, and gives clients of its API. */
async function clientsOf(program: SandboxProgram): Promise<{ core: CoreV1Api; storage: StorageV1Api }> {
  const banner = await program.prints('Ctrl-C ends it');
  const config = new KubeConfig();
  config.loadFromFile(/KUBECONFIG=(.*)/.exec(banner)?.[1] ?? '');
  return { core: config.makeApiClient(CoreV1Api), storage: config.makeApiClient(StorageV1Api) };
}

/** Node id and topology keys of the driver on each node. */
async function csiNodes(storage: StorageV1Api): Promise<unknown[]> {
  const { items } = await storage.listCSINode();
  return items.map(({ metadata, spec }) => [
    metadata?.name,
    ...spec.drivers.flatMap(({ nodeID, topologyKeys = [] }) => [nodeID, ...topologyKeys]),
  ]);
}

describe('the wait for a driver', () => {
  test('ends after --wait, with the reason', async (t) => {
    const home = await temporaryHome(t);
    await using program = SandboxProgram.start(`--csi-address=${home}/csi.sock`, '--wait=500ms', '--', 'true');
    assert.equal(await program.end(), 'exit code 1');
    assert.match(
      program.output,
      /csi-sandbox: no CSI driver was ready at \S+csi\.sock within 0\.5 s: there is no such/,
    );
  });
});

describe('several nodes with one driver', () => {
  test('each has the topology of its --node; a late claim gets a volume in the zone of its pod', async (t) => {
    const home = await temporaryHome(t);
    const zones = [`--topology=${zone}=north`, `--topology=${zone}=south`];
    await using _driver = await HostpathHere.start({ home, flags: zones });
    await using program = SandboxProgram.start(
      `--csi-address=${home}/csi.sock`,
      ...[`--node=a=${zone}=north`, `--node=b=${zone}=south`, '--class-parameter=type=fast'],
    );
    const { core, storage } = await clientsOf(program);
    assert.deepEqual(await csiNodes(storage), [
      ['a', 'a', zone],
      ['b', 'b', zone],
    ]);
    assert.deepEqual((await storage.readStorageClass({ name: 'sandbox-late' })).parameters, { type: 'fast' });
    await eventually(async () => {
      const { items } = await storage.listCSIStorageCapacityForAllNamespaces();
      const topologies = items.filter(({ storageClassName }) => storageClassName === 'sandbox-late');
      assert.deepEqual(topologies.map(({ nodeTopology }) => nodeTopology?.matchLabels?.[zone]).sort(), [
        'north',
        'south',
      ]);
    });
    await core.createNamespacedPersistentVolumeClaim({ namespace: 'default', body: lateClaim });
    await core.createNamespacedPod({ namespace: 'default', body: podInSouth });
    await eventually(async () => {
      const { items } = await core.listPersistentVolume();
      assert.match(JSON.stringify(items.map(({ spec }) => spec?.nodeAffinity)), /"south"/);
    });
  });

  test('capacity that --sidecar-flag switches off is not looked at by the scheduler', async (t) => {
    const home = await temporaryHome(t);
    await using _driver = await HostpathHere.start({ home });
    const off = '--sidecar-flag=--enable-capacity=false';
    await using program = SandboxProgram.start(`--csi-address=${home}/csi.sock`, off);
    const { core, storage } = await clientsOf(program);
    const { spec } = await storage.readCSIDriver({ name: 'hostpath.csi.k8s.io' });
    assert.equal(spec.storageCapacity, false);
    await core.createNamespacedPersistentVolumeClaim({ namespace: 'default', body: lateClaim });
    await core.createNamespacedPod({ namespace: 'default', body: anyPod });
    await eventually(async () => assert.equal((await core.listPersistentVolume()).items.length, 1));
  });

  test('a driver without node service gets its nodes from the sockets of node plugins', async (t) => {
    const [home, other] = [await temporaryHome(t), await temporaryHome(t)];
    await using driver = await HostpathHere.start({ home, flags: [`--topology=${zone}=north`] });
    await driver.setFaults([{ method: 'NodeGetInfo', code: 'UNIMPLEMENTED' }]);
    await using _plugin = await HostpathHere.start({
      home: other,
      flags: ['--node-id=i-0b', `--topology=${zone}=south`],
    });
    await using program = SandboxProgram.start(
      `--csi-address=${home}/csi.sock`,
      ...['--nodes=2', `--node-csi-address=node-2=${other}/csi.sock`],
    );
    const { storage } = await clientsOf(program);
    assert.deepEqual(await csiNodes(storage), [
      ['node-1', 'node-1'],
      ['node-2', 'i-0b', zone],
    ]);
  });

  test('a driver with topology and without node service is told apart, with what to do', async (t) => {
    const home = await temporaryHome(t);
    await using driver = await HostpathHere.start({ home, flags: [`--topology=${zone}=north`] });
    await driver.setFaults([{ method: 'NodeGetInfo', code: 'UNIMPLEMENTED' }]);
    await using program = SandboxProgram.start(`--csi-address=${home}/csi.sock`);
    await program.prints('no node service at its socket: its volumes get no topology. Give the socket');
    await program.prints('Ctrl-C ends it');
  });

  test('a node that --node-csi-address names must be there', async (t) => {
    const home = await temporaryHome(t);
    await using program = SandboxProgram.start(`--csi-address=${home}/csi.sock`, '--node-csi-address=x=/run/x.sock');
    assert.equal(await program.end(), 'exit code 1');
    assert.equal(program.output, 'csi-sandbox: --node-csi-address: there is no node x\n');
  });
});
