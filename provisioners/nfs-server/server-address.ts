/** The address that volumes have as their server: one that nodes can mount from, and that outlives this Pod. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { KubeClient, KubeObject, Resource } from '../../src/index.ts';
import type { AddressSettings } from './settings.ts';

const exec = promisify(execFile);

interface Service extends KubeObject {
  spec?: { clusterIP?: string };
}

/** core/v1 Endpoints: deprecated, but it is what the permissions of existing installations allow to read. */
interface Endpoints extends KubeObject {
  subsets?: { addresses?: { ip: string }[]; ports?: { port: number; protocol?: string }[] }[];
}

const services: Resource = { group: '', version: 'v1', plural: 'services', kind: 'Service', namespaced: true };
const endpoints: Resource = { group: '', version: 'v1', plural: 'endpoints', kind: 'Endpoints', namespaced: true };

/** Of NFS, and of what NFSv3 needs beside it: nlockmgr, mountd, rquotad, rpcbind and statd. */
const nfsPort = 2049;
const allPorts = [nfsPort, 32_803, 20_048, 875, 111, 662];

/**
 * The server of new volumes. In a cluster: `NODE_NAME`, else the address of the service `SERVICE_NAME`, which has to lead
 * to this Pod alone, else `POD_IP`. Outside: the flag, else the first address of `hostname -i`.
 *
 * @throws when there is none, or the service does not fit; the message says how to put it right.
 */
export async function serverAddress(
  settings: AddressSettings,
  { client, onUnstable, signal }: { client: Pick<KubeClient, 'get'>; onUnstable: () => void; signal: AbortSignal },
): Promise<string> {
  const { outOfCluster, serverHostname, nodeName, podIp, serviceName } = settings;
  if (outOfCluster) return serverHostname === '' ? ownAddress() : serverHostname;
  if (nodeName !== '') return nodeName;
  if (podIp === '') throw new Error('the environment variable POD_IP is not set: take it from status.podIP');
  if (serviceName !== '') return serviceAddress(settings, { client, signal });
  onUnstable();
  return podIp;
}

async function ownAddress(): Promise<string> {
  const { stdout } = await exec('hostname', ['-i']);
  const [address = ''] = stdout.trim().split(/\s+/);
  if (address === '') throw new Error('hostname -i gives no address: set -server-hostname');
  return address;
}

async function serviceAddress(
  { podIp, serviceName, podNamespace, nfsV3 }: AddressSettings,
  { client, signal }: { client: Pick<KubeClient, 'get'>; signal: AbortSignal },
): Promise<string> {
  if (podNamespace === '') {
    throw new Error(
      'the environment variable POD_NAMESPACE is not set, which SERVICE_NAME needs: take it from metadata.namespace',
    );
  }
  const name = { namespace: podNamespace, name: serviceName };
  const service = await client.get<Service>(services, name, { signal });
  const { subsets = [] } = await client.get<Endpoints>(endpoints, name, { signal });
  const leadsHere = subsets.some(({ addresses = [], ports = [] }) => {
    const given = ports.map(({ port, protocol = 'TCP' }) => `${port}/${protocol}`).sort();
    const [address, ...others] = addresses;
    return address?.ip === podIp && others.length === 0 && portSets(nfsV3).includes(given.join());
  });
  if (!leadsHere) {
    throw new Error(
      `service SERVICE_NAME=${serviceName} is not valid; check that it has for ports [${requiredPorts(nfsV3).join(' ')}] ` +
        `exactly one endpoint, this pod's IP POD_IP=${podIp}`,
    );
  }
  const address = service.spec?.clusterIP ?? '';
  if (address !== '' && address !== 'None') return address;
  throw new Error(
    `service SERVICE_NAME=${serviceName} has no cluster IP: a headless service cannot be the server of volumes`,
  );
}

function requiredPorts(nfsV3: boolean): string[] {
  return nfsV3 ? allPorts.flatMap((port) => [`${port}/TCP`, `${port}/UDP`]) : [`${nfsPort}/TCP`];
}

/** The lists of ports that a service may have; without NFSv3 also that of a service which was made for both. */
function portSets(nfsV3: boolean): string[] {
  const sets = nfsV3 ? [requiredPorts(true)] : [requiredPorts(true), requiredPorts(false)];
  return sets.map((ports) => ports.sort().join());
}
