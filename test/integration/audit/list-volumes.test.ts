/** What drivers answer to ListVolumes and ControllerGetVolume, well or badly. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { DriverFailure, type RecordedCall } from '../../support/fakes/recording-driver.ts';
import { recordOf } from '../provision/intent-journal/rig.ts';
import { AuditRig, states } from './rig.ts';

const ids = (count: number): string[] => Array.from({ length: count }, (_, index) => `vol-${index}`);
const volume = (volume_id: string) => ({ volume: { volume_id } });

describe('the list of the driver', () => {
  test('is read page by page', async () => {
    await using rig = await AuditRig.start();
    rig.addVolume('pv-last', 'vol-1100');
    rig.addVolume('pv-lost', 'vol-lost');
    rig.lists(...ids(1101));
    const report = await rig.report('--second-look=0');
    const tokens = rig.driver.callsOf('ListVolumes').map(({ request }) => request['starting_token'] ?? '');
    assert.deepEqual(tokens, ['', '500', '1000']);
    assert.equal(report.counts['driverVolumes'], 1101);
    assert.equal(states(report).filter((state) => state.startsWith('unexplained')).length, 1100);
    assert.equal(states(report)[0], 'lost vol-lost');
  });

  test('is started again where the driver says that a token is stale, and what came before does not count', async () => {
    await using rig = await AuditRig.start();
    rig.addVolume('pv-1', 'vol-1');
    rig.driver.next(
      'ListVolumes',
      { entries: [volume('vol-1'), volume('vol-gone')], next_token: 'a' },
      new DriverFailure(status.ABORTED, 'stale'),
      { entries: [volume('vol-new')] },
    );
    const report = await rig.report('--second-look=0');
    assert.deepEqual(states(report), ['lost vol-1', 'unexplained vol-new']);
  });

  test('that has to be started again and again says nothing', async () => {
    await using rig = await AuditRig.start();
    rig.driver.always('ListVolumes', new DriverFailure(status.ABORTED, 'stale'));
    const { code, stderr, stdout } = await rig.run([]);
    assert.equal(code, 3);
    assert.equal(stdout, '');
    assert.match(stderr, /restarted 5 times/);
  });

  test('whose tokens are stale in the middle, again and again, says nothing', async () => {
    await using rig = await AuditRig.start();
    rig.driver.always('ListVolumes', ({ request }: RecordedCall) => {
      if (request['starting_token']) throw new DriverFailure(status.ABORTED, 'stale');
      return { entries: [volume('a')], next_token: '1' };
    });
    const { code, stderr, stdout } = await rig.run([]);
    assert.equal(code, 3);
    assert.equal(stdout, '');
    assert.match(stderr, /restarted 5 times/);
    assert.equal(rig.driver.callsOf('ListVolumes').length, 10);
  });

  for (const [where, isStalled] of [
    ['at once', () => true],
    ['in the middle of the pages', ({ request }: RecordedCall) => request['starting_token'] === '1'],
  ] as const) {
    test(`that stalls ${where} is given up after four calls`, async () => {
      await using rig = await AuditRig.start();
      let stalled = 0;
      rig.driver.always('ListVolumes', async (call: RecordedCall) => {
        if (!isStalled(call)) return { entries: [volume('a')], next_token: '1' };
        stalled++;
        await once(call.cancelled, 'abort');
        return { entries: [] };
      });
      const { code, stderr, stdout } = await rig.run(['--timeout=1s']);
      assert.equal(code, 3);
      assert.equal(stdout, '');
      assert.match(stderr, /does not list its volumes: rpc error: code = DeadlineExceeded/);
      assert.equal(stalled, 4);
    });
  }

  for (const [what, failure, calls] of [
    ['is away for a moment', new DriverFailure(status.UNAVAILABLE, 'starting'), 2],
    ['does not know pages', new DriverFailure(status.INVALID_ARGUMENT, 'max_entries must be 0'), 2],
  ] as const) {
    test(`is read from a driver that ${what}`, async () => {
      await using rig = await AuditRig.start();
      rig.addVolume('pv-1', 'vol-1');
      rig.lists('vol-1');
      rig.driver.next('ListVolumes', failure);
      const report = await rig.report();
      assert.equal(report.code, 0);
      assert.equal(rig.driver.callsOf('ListVolumes').length, calls);
    });
  }

  for (const [what, answer] of [
    ['gives the same token twice', () => ({ entries: [volume('vol-1')], next_token: 'same' })],
    ['has a new token for the same page each time', endless()],
    ['has a circle of tokens', circle()],
  ] as const) {
    test(`that ${what} ends, and nothing is said`, async () => {
      await using rig = await AuditRig.start();
      rig.addVolume('pv-1', 'vol-1');
      rig.driver.always('ListVolumes', answer);
      const { code, stderr, stdout } = await rig.run([]);
      assert.equal(code, 3);
      assert.equal(stdout, '');
      assert.match(stderr, /never ends/);
    });
  }

  test('may have empty pages, repeated entries and entries without id, of which the report says how many', async () => {
    await using rig = await AuditRig.start();
    rig.addVolume('pv-1', 'vol-1');
    rig.driver.next(
      'ListVolumes',
      { entries: [], next_token: 'a' },
      { entries: [volume('vol-1'), volume('vol-2'), {}], next_token: 'b' },
      { entries: [volume('vol-1'), volume('vol-2')] },
    );
    const report = await rig.report('--second-look=0');
    assert.deepEqual(states(report), ['unexplained vol-2']);
    assert.equal(report.counts['driverVolumes'], 2);
    assert.deepEqual(report.notes, [
      'the driver lists 1 volume(s) without an id',
      'the driver listed 2 volume(s) twice',
    ]);
  });

  test('may come in one answer that is larger than gRPC allows by default', async () => {
    await using rig = await AuditRig.start();
    const many = ids(100_000).map((id) => volume(`${id}-${'x'.repeat(60)}`));
    rig.addVolume('pv-last', many.at(-1)!.volume.volume_id);
    rig.driver.always('ListVolumes', { entries: many });
    const report = await rig.report('--second-look=0', '--timeout=2m');
    assert.equal(report.counts['driverVolumes'], 100_000);
    assert.equal(report.counts['inUse'], 1);
  });

  test('that fails says why nothing is known', async () => {
    await using rig = await AuditRig.start();
    rig.driver.always('ListVolumes', new DriverFailure(status.INTERNAL, 'backend is broken'));
    const { code, stderr } = await rig.run([]);
    assert.equal(code, 3);
    assert.match(stderr, /does not list its volumes: rpc error: code = Internal desc = backend is broken/);
  });
});

describe('an audit of a driver without LIST_VOLUMES', () => {
  test('asks for single volumes if it has GET_VOLUME', async () => {
    await using rig = await AuditRig.start({ controller: ['CREATE_DELETE_VOLUME', 'GET_VOLUME'] });
    for (const n of [1, 2, 3]) rig.addVolume(`pv-${n}`, `vol-${n}`);
    const stuck = { phase: 'stuck', problem: 'why' } as const;
    await rig.put({ ...recordOf(1), ...stuck, handle: 'vol-left' }, { ...recordOf(2), ...stuck, handle: 'vol-2-gone' });
    const there = new Set(['vol-1', 'vol-left']);
    rig.driver.always('ControllerGetVolume', ({ request }: RecordedCall) => {
      const id = String(request['volume_id']);
      if (there.has(id)) return volume(id);
      throw new DriverFailure(id.startsWith('vol-2') ? status.NOT_FOUND : status.INTERNAL, 'no');
    });
    const report = await rig.report();
    assert.equal(report.code, 2);
    assert.deepEqual(states(report), ['lost vol-2', 'leaked vol-left', 'stuck vol-2-gone', 'unverified vol-3']);
    assert.equal(report.findings[2]?.detail, 'undecidable: why; the driver does not have its storage');
    assert.match(report.notes[0] ?? '', /lacks LIST_VOLUMES: its volumes were requested one by one/);
  });

  test('says what is missing if it has no GET_VOLUME either, and compares the records', async () => {
    await using rig = await AuditRig.start({ controller: ['CREATE_DELETE_VOLUME'] });
    rig.addVolume('pv-1', 'vol-1');
    const report = await rig.report();
    assert.equal(report.code, 3);
    assert.deepEqual(report.findings, []);
    assert.equal(report.counts['unchecked'], 1);
    assert.match(report.incomplete[0] ?? '', /lacks LIST_VOLUMES, and lacks GET_VOLUME/);
    const { stdout } = await rig.run([]);
    assert.match(stdout, /^Not checked: the driver lacks LIST_VOLUMES/m);
    assert.match(stdout, /: nothing that needs attention was found, but not everything could be checked \(/);
  });

  test('does the same where the driver reports the capability all the same', async () => {
    await using rig = await AuditRig.start();
    rig.driver.always('ListVolumes', new DriverFailure(status.UNIMPLEMENTED, 'unknown method'));
    const report = await rig.report();
    assert.equal(report.code, 3);
    assert.match(report.incomplete[0] ?? '', /reports LIST_VOLUMES, but does not implement it/);
  });
});

test('a volume that is not listed is not lost when the driver knows it by its id', async () => {
  await using rig = await AuditRig.start({ controller: ['CREATE_DELETE_VOLUME', 'LIST_VOLUMES', 'GET_VOLUME'] });
  rig.addVolume('pv-1', 'vol-1');
  rig.addVolume('pv-2', 'fs-1:/share', { annotations: {} });
  rig.lists();
  rig.driver.always('ControllerGetVolume', ({ request }: RecordedCall) => {
    if (request['volume_id'] === 'vol-1') return volume('vol-1');
    throw new DriverFailure(status.NOT_FOUND, 'no');
  });
  assert.deepEqual(states(await rig.report()), ['lost fs-1:/share']);
});

function circle() {
  let page = 0;
  return () => ({ entries: [volume(`vol-${page % 7}`)], next_token: `token-${++page % 7}` });
}

function endless(): () => object {
  let page = 0;
  return () => ({ entries: [volume('vol-1')], next_token: String(page++) });
}
