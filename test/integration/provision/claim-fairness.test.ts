import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import { IgnoredError, ProvisionError, type ProvisioningState } from '../../../src/provision/provisioner.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { annotation, resource, Rig, type RigOptions } from './rig.ts';
import { madeVolume } from './scripted-provisioner.ts';

const failure = (state: ProvisioningState = 'finished'): ProvisionError => new ProvisionError('no room', { state });
const namingTeam = { methods: { claimAnnotations: () => ['team'] } };

/** A claim `ns/a` whose attempts fail, and whose second attempt is due in a minute. */
async function waitingClaim(options: RigOptions = namingTeam): Promise<{ rig: Rig; clock: ManualClock; uid: string }> {
  const clock = new ManualClock();
  const limiter = new ExponentialLimiter({ baseMs: 60_000, maxMs: 300_000 });
  const rig = await Rig.prepare({ clock, limiter, ...options });
  rig.addClass();
  const { uid } = rig.addClaim().metadata;
  rig.provisioner.otherwiseProvision = failure();
  await rig.start();
  await rig.synced(uid, 1);
  return { rig, clock, uid };
}

function annotate(rig: Rig, annotations: Record<string, string>): void {
  rig.changeClaim('a', { annotations: { ...rig.claim()?.metadata.annotations, ...annotations } });
}

function addNamespaces(rig: Rig, ...names: string[]): void {
  for (const name of names) rig.api.create({ group: '', version: 'v1', plural: 'namespaces' }, { metadata: { name } });
}

describe('a claim that waits after a failure', () => {
  test('is not retried sooner when its annotations or labels change', async () => {
    const { rig, clock, uid } = await waitingClaim();
    await using _rig = rig;
    for (let count = 0; count < 5; count++) {
      annotate(rig, { notes: String(count) });
      rig.touchClaim();
      await rig.settle();
    }
    assert.equal(rig.provisioner.provisions.length, 1);
    await clock.advance(60_000);
    await rig.synced(uid, 2);
    assert.equal(rig.provisioner.provisions.length, 2);
    assert.equal(rig.provisioner.provisions[1]?.claim.metadata.annotations?.['notes'], '4');
  });

  for (const { what, change } of [
    { what: 'an annotation that its volume is made from', change: (rig: Rig) => annotate(rig, { team: 'red' }) },
    { what: 'its selected node', change: (rig: Rig) => annotate(rig, { [annotation.node]: 'n1' }) },
  ]) {
    test(`is retried immediately after a change of ${what}`, async () => {
      const { rig, uid } = await waitingClaim();
      await using _rig = rig;
      change(rig);
      await rig.synced(uid, 2);
      assert.equal(rig.provisioner.provisions.length, 2);
    });
  }

  test('is retried immediately after a change of any annotation or label, if its provisioner does not say which it reads', async () => {
    const { rig, uid } = await waitingClaim({});
    await using _rig = rig;
    annotate(rig, { notes: 'x' });
    await rig.synced(uid, 2);
    rig.touchClaim();
    await rig.synced(uid, 3);
    assert.equal(rig.provisioner.provisions.length, 3);
  });

  test('is not retried sooner when its annotations change during the attempt', async () => {
    const { rig, clock, uid } = await waitingClaim();
    await using _rig = rig;
    const held = Promise.withResolvers<never>();
    rig.provisioner.provisionSteps.push(() => held.promise);
    await clock.advance(60_000);
    await rig.until('the second attempt', () => rig.provisioner.provisions.length === 2);
    annotate(rig, { notes: 'x' });
    await rig.until('the change in the cache', () => rig.claimInCache('a')?.metadata.annotations?.['notes'] === 'x');
    held.reject(failure());
    await rig.synced(uid, 2);
    await rig.settle();
    assert.equal(rig.provisioner.provisions.length, 2);
  });

  test('is synced when it is bound meanwhile, and when it is deleted', async () => {
    const { rig } = await waitingClaim();
    await using _rig = rig;
    rig.changeClaim('a', {}, { volumeName: 'other' });
    await rig.settle();
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.equal(rig.controller.queueLengths.claims, 0);
  });
});

describe('claims of many namespaces', () => {
  test('one that arrives last is next, however many wait in another namespace', async () => {
    await using rig = await Rig.prepare();
    rig.addClass();
    addNamespaces(rig, 'other');
    const held = Promise.withResolvers<never>();
    rig.provisioner.provisionSteps.push(() => held.promise);
    const claims = Array.from({ length: 30 }, (_, count) => rig.addClaim(`c${count}`));
    rig.startOnly();
    await rig.until('the queue', () => rig.controller.queueLengths.claims === 29);
    rig.api.create(resource.claims, {
      ...structuredClone(claims[0] as object),
      metadata: { name: 'last', namespace: 'other', annotations: { [annotation.provisioner]: 'drv' } },
    });
    await rig.until('the last claim', () => rig.controller.queueLengths.claims === 30);
    held.reject(failure());
    await rig.until('all calls', () => rig.provisioner.provisions.length === 31);
    const names = rig.provisioner.provisions.map(({ claim }) => claim.metadata.name);
    assert.ok(names.indexOf('last') <= 2, `the order is ${names.join(' ')}`);
  });

  test('calls that hang for one namespace leave workers to the others', async () => {
    await using rig = await Rig.prepare({ controller: { workers: 10 } });
    rig.addClass();
    addNamespaces(rig, 'bad', 'worse', 'good');
    const hanging = Promise.withResolvers<never>();
    hanging.promise.catch(() => undefined);
    using end = new DisposableStack();
    end.defer(() => hanging.reject(failure()));
    rig.provisioner.otherwiseProvision = ({ claim, volumeName }) =>
      claim.metadata.namespace === 'good' ? madeVolume(volumeName) : hanging.promise;
    const claim = structuredClone(rig.addClaim('first'));
    const addTo = (namespace: string, name: string): string | undefined =>
      rig.api.create(resource.claims, {
        ...(claim as object),
        metadata: { name, namespace, annotations: { [annotation.provisioner]: 'drv' } },
      }).metadata.uid;
    for (let count = 0; count < 30; count++) {
      addTo('bad', `c${count}`);
      addTo('worse', `c${count}`);
    }
    await rig.start();
    await rig.until('calls', () => rig.provisioner.provisions.length >= 9);
    const uid = addTo('good', 'c');
    await rig.until('its volume', () => rig.volume(`pvc-${uid}`) !== undefined);
    assert.ok(rig.provisioner.provisions.length <= 10, 'no more calls than workers');
  });

  test('whose attempts all fail stay limited until one of them gets a volume, whatever else ends without a failure', async () => {
    const clock = new ManualClock();
    const limiter = new ExponentialLimiter({ baseMs: 1000, maxMs: 1000 });
    await using rig = await Rig.prepare({ clock, limiter });
    rig.addClass();
    for (let count = 0; count < 60; count++) rig.addClaim(`c${count}`);
    rig.provisioner.otherwiseProvision = failure();
    await rig.start();
    const { provisions } = rig.provisioner;
    const calls = (count: number): Promise<unknown> => rig.until(`${count} calls`, () => provisions.length === count);
    await calls(60);
    await rig.until('the back-off', () => rig.controller.queueLengths.claims === 0);
    await clock.advance(1000);
    await calls(80); // 20 of the retries, all that are allowed at a time
    rig.provisioner.provisionSteps.push(new IgnoredError('not now'));
    rig.addClaim('without-a-volume');
    await calls(81);
    await rig.settle();
    assert.equal(provisions.length, 81);
    rig.provisioner.provisionSteps.push(({ volumeName }) => madeVolume(volumeName));
    rig.addClaim('good');
    await calls(122);
  });
});
