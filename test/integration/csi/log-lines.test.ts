/** What the log says of claims and calls to the driver, at which verbosity: the whole program, lines in JSON. */
import assert from 'node:assert/strict';
import { textMeaning } from '../../../src/explain/causes/causes.ts';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { DriverFailure } from '../../support/fakes/recording-driver.ts';
import { Scene } from './scene.ts';

type Line = Record<string, unknown> & { level: string; msg: string };

/** The lines so far, without time and caller. */
function linesOf(scene: Scene): Line[] {
  return scene.program.lines.map((line) => {
    const { ts: _ts, caller: _caller, v: _v, ...fields } = JSON.parse(line) as Line;
    return fields;
  });
}

/** Lines about calls that concern volumes, durations left out. */
function calls(scene: Scene): object[] {
  return linesOf(scene)
    .filter(({ msg, method }) => msg === 'CSI call finished' && /(Create|Delete)Volume$/.test(String(method)))
    .map(({ durationMs, ...fields }) => {
      assert.ok(Number.isSafeInteger(durationMs), 'a duration in milliseconds');
      return fields;
    });
}

const common = { level: 'debug', msg: 'CSI call finished' };
const create = { ...common, method: '/csi.v1.Controller/CreateVolume' };
const remove = { ...common, method: '/csi.v1.Controller/DeleteVolume' };

/** Starts a scene whose log has the verbosity, in JSON. */
function start(verbosity: number, flags: string[] = []): Promise<Scene> {
  const late = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'late' },
    provisioner: 'csi.example.com',
    volumeBindingMode: 'WaitForFirstConsumer',
  };
  return Scene.start({ objects: [late], flags: [`-v=${verbosity}`, '--logging-format=json', ...flags] });
}

describe('-v=2', () => {
  test('logs each call to the driver in one line, with code, duration and the claim or volume', async () => {
    await using scene = await start(2);
    scene.driver.next('CreateVolume', new DriverFailure(status.INTERNAL, 'disk on fire'));
    scene.addClaim();
    const volume = await scene.volume();
    scene.release(volume);
    await scene.volumeDeleted();
    assert.deepEqual(calls(scene), [
      { ...create, code: 'Internal', claim: 'ns1/c1' },
      { ...create, code: 'OK', claim: 'ns1/c1' },
      { ...remove, code: 'OK', volume: volume.metadata.name },
    ]);
    const startUp = linesOf(scene).filter(({ msg }) => msg === 'CSI call finished');
    assert.deepEqual(startUp[0]?.['method'], '/csi.v1.Identity/Probe');
    assert.ok(!scene.program.lines.some((line) => line.includes('capacity_range')), 'no requests');
  });

  test('logs the decision about each claim', async () => {
    await using scene = await start(2);
    scene.addClaim('waiting', { storageClassName: 'late' });
    scene.addClaim();
    await scene.volume();
    const decisions = await scene.until('a decision about each', () => {
      const lines = linesOf(scene).filter(({ msg }) => /^(Not provisioning|Provisioning) the claim/.test(msg));
      const first = ['ns1/waiting', 'ns1/c1'].map((name) => lines.find(({ claim }) => claim === name));
      return !first.includes(undefined) && first;
    });
    assert.deepEqual(decisions, [
      { level: 'debug', claim: 'ns1/waiting', reason: 'waits-for-node', msg: 'Not provisioning the claim now' },
      { level: 'debug', claim: 'ns1/c1', class: 'sc', node: '', msg: 'Provisioning the claim' },
    ]);
  });
});

describe('at any verbosity below that of messages', () => {
  for (const verbosity of [0, 2]) {
    test(`an error of CreateVolume appears once for each attempt, in a line that names the claim: -v=${verbosity}`, async () => {
      await using scene = await start(verbosity);
      const failures = [1, 2].map((attempt) => new DriverFailure(status.INTERNAL, `disk ${attempt} on fire`));
      scene.driver.next('CreateVolume', ...failures);
      const { uid } = scene.addClaim().metadata;
      await scene.volume();
      const about = linesOf(scene).filter((line) => JSON.stringify(line).includes('on fire'));
      const { cause, cure } = textMeaning('rpc error: code = Internal desc = disk 1 on fire');
      const common = { level: 'warn', claim: 'ns1/c1', uid, threshold: 0, cause, cure };
      const warning = { ...common, msg: 'Error syncing claim, trying again' };
      assert.deepEqual(about, [
        { ...warning, failures: 0, err: 'rpc error: code = Internal desc = disk 1 on fire' },
        { ...warning, failures: 1, err: 'rpc error: code = Internal desc = disk 2 on fire' },
      ]);
    });

    test(`a claim that is deleted during its attempt is still named: -v=${verbosity}`, async () => {
      await using scene = await start(verbosity);
      scene.driver.next('CreateVolume', async () => {
        scene.removeClaim();
        scene.addClaim('later');
        await scene.volume('later'); // what happened before it is known by then
        throw new DriverFailure(status.INTERNAL, 'disk on fire');
      });
      scene.addClaim();
      await scene.program.logged('disk on fire');
      const about = linesOf(scene).filter((line) => JSON.stringify(line).includes('on fire'));
      assert.deepEqual(about.map(({ level, claim }) => [level, claim]), [['warn', 'ns1/c1']]); // prettier-ignore
    });

    test(`an infeasible claim and a failed deletion appear once, too: -v=${verbosity}`, async () => {
      await using scene = await start(verbosity);
      scene.addClaim('good');
      const volume = await scene.volume('good');
      scene.driver.next('DeleteVolume', new DriverFailure(status.INTERNAL, 'still on fire'));
      scene.release(volume);
      await scene.volumeDeleted('good');
      scene.driver.next('CreateVolume', new DriverFailure(status.INVALID_ARGUMENT, 'too much fire'));
      scene.addClaim();
      await scene.program.logged('too much fire');
      scene.addClaim('later');
      await scene.volume('later');
      const about = (text: string): Line[] => linesOf(scene).filter((line) => JSON.stringify(line).includes(text));
      assert.deepEqual(
        about('still on fire').map(({ level }) => level),
        ['warn'],
      );
      const [attempt, ...heldBack] = about('too much fire');
      assert.equal(attempt?.level, 'warn');
      assert.match(String(attempt['err']), /^rpc error: code = InvalidArgument/);
      assert.deepEqual(heldBack, []);
    });
  }

  test('a node that is to be selected again appears with the error of the driver, once', async () => {
    await using scene = await Scene.start({
      flags: ['--logging-format=json', '-v=2'],
      plugin: ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'],
      storageClass: { volumeBindingMode: 'WaitForFirstConsumer' },
      objects: [
        { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', labels: { zone: 'a' } } },
        {
          apiVersion: 'storage.k8s.io/v1',
          kind: 'CSINode',
          metadata: { name: 'n1' },
          spec: { drivers: [{ name: 'd.example.com', nodeID: 'n1', topologyKeys: ['zone'] }] },
        },
      ],
    });
    scene.driver.next('CreateVolume', new DriverFailure(status.RESOURCE_EXHAUSTED, 'n1 is full'));
    scene.addClaim('c1', {}, { annotations: { 'volume.kubernetes.io/selected-node': 'n1' } });
    await scene.program.logged('Another node is to be selected for the claim');
    await scene.event('ProvisioningFailed');
    const about = linesOf(scene).filter((line) => JSON.stringify(line).includes('n1 is full'));
    const [{ err, ...line } = { err: '' }, ...more] = about;
    const meaning = textMeaning(String(err));
    assert.equal(meaning.cause, 'no-capacity');
    const msg = 'Another node is to be selected for the claim';
    assert.deepEqual(line, { level: 'info', claim: 'ns1/c1', cause: meaning.cause, cure: meaning.cure, msg });
    assert.match(String(err), /n1 is full$/);
    assert.deepEqual(more, []);
  });
});

test('-v=0 says nothing of single calls and decisions', async () => {
  await using scene = await start(0);
  scene.addClaim();
  await scene.volume();
  await scene.program.logged('ProvisioningSucceeded');
  assert.ok(!linesOf(scene).some(({ level }) => level === 'debug' || level === 'trace'));
});
