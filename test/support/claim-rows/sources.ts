/** Sources, Secrets, attributes classes, and what the driver and the API server say. */
import type { Row } from './row.ts';

const secretKeys = 'csi.storage.k8s.io/provisioner-secret';

export const sources: readonly Row[] = [
  {
    title: 'a clone of a claim that does not exist',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({ dataSource: { kind: 'PersistentVolumeClaim', name: 'source' } });
    },
    recorded: (world) => world.handedOver(),
    verdict: 'stuck',
    cause: 'source-missing',
    says: /^PersistentVolumeClaim \S+\/source, the data source of the claim, does not exist\.$/,
    advises: /^Create the source/,
    cure: (world) => world.addClaim({}, { name: 'source' }),
    ends: 'bound',
  },
  {
    title: 'a Secret that does not exist',
    async arrange(world) {
      const [name, namespace] = ['no-such', world.namespace];
      await world.addClass({ parameters: { [`${secretKeys}-name`]: name, [`${secretKeys}-namespace`]: namespace } });
      await world.addClaim();
    },
    recorded: (world) => world.handedOver(),
    verdict: 'stuck',
    cause: 'secret-missing',
    says: /no-such/,
    advises: /^Create the Secret/,
    cure: (world) => world.add('secret', { metadata: { name: 'no-such' } }),
    ends: 'bound',
  },
  {
    title: 'an error of the driver',
    async arrange(world) {
      await world.fault({ code: 'INTERNAL', message: 'on fire' });
      await world.addClass();
      await world.addClaim();
    },
    async recorded(world) {
      await world.handedOver();
      const message = 'failed to provision volume with StorageClass "ns1": rpc error: code = Internal desc = on fire';
      await world.addEvent({ kind: 'claim', name: 'c' }, { reason: 'ProvisioningFailed', message });
    },
    verdict: 'stuck',
    cause: 'driver-error',
    says: /^Provisioning failed .*code = Internal desc = on fire$/,
    advises: /log of the driver's controller/,
    cure: (world) => world.fault(),
    ends: 'bound',
  },
];
