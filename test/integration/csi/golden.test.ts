/**
 * Claims through the whole program: what the driver was asked and what was saved, against values derived by hand from
 * the contract. `<identity>` stands for the identity of the process, which nobody can know before.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { Bulletin } from '../../support/bulletin.ts';
import { type SentRequest, Wire } from '../provision/wire.ts';
import { Program } from '../../support/program.ts';
import { type GoldenCase, goldenCases } from './golden-cases.ts';
import { StoredCluster } from './stored-cluster.ts';

const volumesPath = '/api/v1/persistentvolumes';

describe('a claim through the whole program', () => {
  for (const { name, given, request, volume } of goldenCases) {
    test(name, async () => {
      const seen = await provision(given);
      assert.deepEqual(seen.requests, [request], 'CreateVolumeRequest');
      assert.deepEqual(seen.volumes, [volume], 'PersistentVolume');
      assert.deepEqual(seen.failures, []);
    });
  }
});

async function provision(given: GoldenCase['given']): Promise<Record<'requests' | 'volumes' | 'failures', unknown[]>> {
  await using driver = await RecordingDriver.start({
    ...(given.pluginCapabilities === undefined ? {} : { plugin: given.pluginCapabilities }),
    ...(given.controllerCapabilities === undefined ? {} : { controller: given.controllerCapabilities }),
  });
  driver.always('CreateVolume', given.answer);
  await using cluster = await StoredCluster.start([
    { ...given.class, apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass' },
    { ...given.claim, apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
    ...(given.others ?? []),
  ]);
  const bulletin = new Bulletin();
  using wire = new Wire({ origin: cluster.url, onAnswer: bulletin.notify });
  const sent = (path: string): SentRequest[] =>
    wire.requests.filter((request) => request.method === 'POST' && request.path.split('?')[0]?.endsWith(path) === true);
  const reasons = (): string[] => sent('/events').map(({ body }) => body.reason);
  {
    await using program = new Program({ socketPath: driver.socketPath, apiUrl: cluster.url, flags: given.flags ?? [] });
    const done = bulletin.until('the success of the claim', () => reasons().includes('ProvisioningSucceeded'));
    await Promise.race([
      done,
      program.ended.then(({ code }) => assert.fail(`the program ended with code ${code}\n${program.lines.join('')}`)),
    ]);
  }
  for (const { path } of sent(volumesPath)) assert.equal(path, `${volumesPath}?fieldManager=csi-provisioner`);
  return {
    requests: driver.callsOf('CreateVolume').map(({ request }) => asUnderstood(request)),
    volumes: sent(volumesPath).map(({ bodyText }) => withIdentityMasked(JSON.parse(bodyText))),
    failures: sent('/events').flatMap(({ body }) => (body.reason === 'ProvisioningFailed' ? [body.message] : [])),
  };
}

/** Fields that are maps: an empty value in them is a value. */
const maps = new Set(['parameters', 'secrets', 'mutable_parameters']);
/** Added by decoding, beside the chosen member. */
const oneofNames = new Set(['access_type', 'type']);

/** A message as any receiver understands it: a default that was sent is the same as nothing. */
function asUnderstood(message: unknown): unknown {
  if (Array.isArray(message)) return message.map(asUnderstood);
  if (typeof message !== 'object' || message === null) return message;
  return Object.fromEntries(
    Object.entries(message).flatMap(([name, value]: [string, unknown]): [string, unknown][] => {
      if (oneofNames.has(name) || value === '' || value === '0') return [];
      return [[name, maps.has(name) ? value : asUnderstood(value)]];
    }),
  );
}

/** The identity is `<milliseconds>-<0 to 9999>-<driver name>`; anything else stays and fails the comparison. */
function withIdentityMasked(volume: unknown): unknown {
  const key = 'storage.kubernetes.io/csiProvisionerIdentity';
  return JSON.parse(
    JSON.stringify(volume, (name, value: unknown) =>
      name === key && /^\d{13}-(0|[1-9]\d{0,3})-d\.example\.com$/.test(String(value)) ? '<identity>' : value,
    ),
  ) as unknown;
}
