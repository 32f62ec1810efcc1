import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import type { KubeObject, Resource } from '../../../src/index.ts';
import { serverAddress } from '../../../provisioners/nfs-server/server-address.ts';
import type { AddressSettings } from '../../../provisioners/nfs-server/settings.ts';

const inPod: AddressSettings = {
  outOfCluster: false,
  serverHostname: '',
  podIp: '10.0.0.5',
  serviceName: 'nfs',
  podNamespace: 'storage',
  nodeName: '',
  nfsV3: true,
};
const ports = [2049, 32803, 20048, 875, 111, 662].flatMap((port) =>
  ['TCP', 'UDP'].map((protocol) => ({ port, protocol })),
);
const good = { addresses: [{ ip: '10.0.0.5' }], ports };

/** The address, with this service in the cluster. */
async function addressOf(
  settings: Partial<AddressSettings>,
  { subsets = [good], clusterIP = '10.96.0.9' }: { subsets?: object[]; clusterIP?: string } = {},
): Promise<{ address: string; unstable: boolean }> {
  let unstable = false;
  const client = {
    get: <T extends KubeObject>({ plural }: Resource, name: { name: string }): Promise<T> => {
      const object = plural === 'services' ? { spec: { clusterIP } } : { subsets };
      return Promise.resolve({ metadata: name, ...object } as KubeObject as T);
    },
  };
  const signal = new AbortController().signal;
  const onUnstable = (): void => void (unstable = true);
  return { address: await serverAddress({ ...inPod, ...settings }, { client, onUnstable, signal }), unstable };
}

describe('the server address on volumes', () => {
  test('is the cluster IP of the service that leads to this pod', async () => {
    assert.deepEqual(await addressOf({}), { address: '10.96.0.9', unstable: false });
  });

  test('is the node, where there is one, before any service', async () => {
    assert.equal((await addressOf({ nodeName: 'node-1', podIp: '' })).address, 'node-1');
  });

  test('is that of the pod without a service, which does not last', async () => {
    assert.deepEqual(await addressOf({ serviceName: '' }), { address: '10.0.0.5', unstable: true });
  });

  test('outside of the cluster is the one that was given, else the first of the machine', async () => {
    assert.equal((await addressOf({ outOfCluster: true, serverHostname: 'nas' })).address, 'nas');
    const [first] = execFileSync('hostname', ['-i'], { encoding: 'utf8' }).trim().split(/\s+/);
    assert.equal((await addressOf({ outOfCluster: true })).address, first);
  });

  test('needs the port of NFS alone, where NFSv3 is off', async () => {
    const subsets = [{ ...good, ports: [{ port: 2049, protocol: 'TCP' }] }];
    assert.equal((await addressOf({ nfsV3: false }, { subsets })).address, '10.96.0.9');
    assert.equal((await addressOf({ nfsV3: false })).address, '10.96.0.9', 'a service made for both will do');
  });

  for (const { title, subsets, clusterIP, settings = {}, message } of [
    {
      title: 'a port is missing',
      subsets: [{ ...good, ports: ports.slice(1) }],
      message: /SERVICE_NAME=nfs is not valid/,
    },
    { title: 'there is one port more', subsets: [{ ...good, ports: [...ports, { port: 80 }] }], message: /not valid/ },
    {
      title: 'it leads to another pod',
      subsets: [{ ...good, addresses: [{ ip: '10.0.0.6' }] }],
      message: /POD_IP=10.0.0.5/,
    },
    {
      title: 'it leads to two pods',
      subsets: [{ ...good, addresses: [{ ip: '10.0.0.5' }, { ip: '10.0.0.6' }] }],
      message: /exactly one endpoint/,
    },
    { title: 'it leads nowhere', subsets: [], message: /not valid/ },
    { title: 'it is headless', clusterIP: 'None', message: /no cluster IP/ },
    { title: 'its namespace is not known', settings: { podNamespace: '' }, message: /POD_NAMESPACE is not set/ },
    { title: 'the address of the pod is not known', settings: { podIp: '' }, message: /POD_IP is not set/ },
  ] as {
    title: string;
    subsets?: object[];
    clusterIP?: string;
    settings?: Partial<AddressSettings>;
    message: RegExp;
  }[]) {
    test(`is none of a service, where ${title}`, async () => {
      const service = { ...(subsets && { subsets }), ...(clusterIP && { clusterIP }) };
      await assert.rejects(addressOf(settings, service), message);
    });
  }
});
