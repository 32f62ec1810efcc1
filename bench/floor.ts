/**
 * The least that the work can cost in this stack, as a process of its own: for each claim one CreateVolume, one POST of
 * a volume and two of events, nothing else. Prints what it took as one line of JSON.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Client, credentials } from '@grpc/grpc-js';
import { Agent } from 'undici';
import { KubeConfig } from '@kubernetes/client-node';
import { loadCsi } from '../src/csi/csi-proto.ts';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { inParallel } from '../test/support/stage.ts';

const values = scriptCommand(
  'node bench/floor.ts',
  'The least that claims can cost in this stack; started by the benchmark.',
)
  .requiredOption('--kubeconfig <FILE>', 'the cluster')
  .requiredOption('--address <ADDRESS>', 'socket of the driver')
  .requiredOption('--driver <NAME>', 'name of the driver')
  .option('--claims <N>', 'how many', wholeNumber(), 100)
  .option('--width <N>', 'at once', wholeNumber(), 100)
  .option('--per-second <N>', 'claims begun in a second; Infinity: whenever an earlier one has ended', Number, Infinity)
  .parse()
  .opts<{
    kubeconfig: string;
    address: string;
    driver: string;
    claims: number;
    width: number;
    perSecond: number;
  }>();
const { claims: count, perSecond } = values;
const config = new KubeConfig();
config.loadFromFile(values.kubeconfig);
const cluster = config.getCurrentCluster();
const server = new URL(cluster?.server ?? '');
const ca = cluster?.caData === undefined ? undefined : Buffer.from(cluster.caData, 'base64');
const agent = new Agent({ connect: ca === undefined ? {} : { ca } });
const token = config.getCurrentUser()?.token;
const headers = {
  'content-type': 'application/json',
  accept: 'application/json',
  ...(token !== undefined && { authorization: `Bearer ${token}` }),
};
const method = loadCsi().v1.Controller.CreateVolume;
const client = new Client(values.address, credentials.createInsecure());

/** Sends one request and reads the response. */
async function post(path: string, body: object): Promise<void> {
  const response = await agent.request({
    origin: server.origin,
    path,
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  const text = await response.body.text();
  if (response.statusCode >= 300) throw new Error(`${path}: ${text}`);
  JSON.parse(text);
}

/** One CreateVolume over the socket; gives the id of the volume. */
function createVolume(name: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = {
      name,
      capacity_range: { required_bytes: '1073741824' },
      volume_capabilities: [{ mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' as const } }],
    };
    client.makeUnaryRequest(method.path, method.request.encode, method.response.decode, request, (error, response) => {
      if (error === null) resolve(response?.volume?.volume_id ?? '');
      else reject(error);
    });
  });
}

/** Everything for one claim. */
async function provision(index: number): Promise<void> {
  const name = `floor-${index}`;
  const volumeHandle = await createVolume(name);
  await post('/api/v1/persistentvolumes', {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': values.driver } },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: 'floor',
      csi: { driver: values.driver, volumeHandle },
    },
  });
  for (const reason of ['Provisioning', 'ProvisioningSucceeded']) {
    await post('/api/v1/namespaces/default/events', {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${name}.${reason.toLowerCase()}.${process.pid}`, namespace: 'default' },
      involvedObject: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace: 'default', name },
      reason,
      message: `What the sidecar reports of claim "default/${name}" in this step of its life`,
      type: 'Normal',
      source: { component: 'floor' },
    });
  }
}

/** Begins so many pieces of work in a second, however long each takes: half idle, a process works less efficiently. */
async function atPace(total: number, perSecond: number, work: (index: number) => Promise<void>): Promise<void> {
  const beganMs = performance.now();
  const begun: Promise<void>[] = [];
  for (let index = 0; index < total; index++) {
    const aheadMs = beganMs + (index * 1000) / perSecond - performance.now();
    if (aheadMs > 0) await delay(aheadMs);
    begun.push(work(index));
  }
  await Promise.all(begun);
}

const before = process.cpuUsage();
const startedMs = performance.now();
if (perSecond === Infinity) await inParallel(count, values.width, provision);
else await atPace(count, perSecond, provision);
const { user, system } = process.cpuUsage(before);
const seconds = (performance.now() - startedMs) / 1000;
process.stdout.write(`${JSON.stringify({ seconds, cpuMs: (user + system) / 1000 })}\n`);
client.close();
await agent.close();
