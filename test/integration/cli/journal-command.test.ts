/** `csi-provisioner journal` beside a sidecar's journal that works, over real HTTP. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { describe, test } from 'node:test';
import { type ListedRecord, manageJournal } from '../../../src/cli/journal-command.ts';
import { SubcommandError, type TextInput } from '../../../src/cli/subcommand-call.ts';
import { eventually } from '../../support/eventually.ts';
import { leaseResource, never, prefix, type Process, recordOf, Rig, uidOf } from '../provision/intent-journal/rig.ts';

interface Run {
  code: number;
  stdout: string;
  stderr: string;
}

interface Scene extends AsyncDisposable {
  cluster: Rig;
  sidecar: Process;
  run(args: readonly string[], answer?: string): Promise<Run>;
}

/** The sidecar of driver `drv.example.com`, and an operator. */
async function scene(options: Parameters<Rig['open']>[0] = {}): Promise<Scene> {
  const cluster = await Rig.start();
  const sidecar = await cluster.open({ lockName: 'drv-example-com', roundMs: 50, ...options });
  return {
    cluster,
    sidecar,
    run: async (args, answer) => {
      let [stdout, stderr] = ['', ''];
      const typed = new PassThrough();
      if (answer !== undefined) typed.end(`${answer}\n`);
      const stdin: TextInput = Object.assign(typed, { isTTY: answer !== undefined });
      const code = await manageJournal({
        program: 'csi-provisioner journal',
        args: [
          ...args,
          ...['--driver=drv.example.com', `--master=${cluster.url}`, '--leader-election-namespace=ns', '--v=0'],
        ],
        environment: {},
        stdin,
        stdout: { write: (text) => (stdout += text) },
        stderr: { write: (text) => (stderr += text) },
        signal: never,
      }).catch((error: unknown) => {
        if (!(error instanceof SubcommandError)) throw error;
        stderr += error.message;
        return error.exitCode;
      });
      return { code, stdout, stderr };
    },
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}

function isMarked({ cluster }: Scene): boolean {
  return cluster.shards.every(({ metadata }) => metadata.annotations?.['csi-provisioner.journal/drain'] !== undefined);
}

describe('csi-provisioner journal list', () => {
  test('tells of each record what it waits for', async () => {
    await using it = await scene();
    await it.sidecar.journal.put(recordOf(1), never);
    const stuck = { phase: 'stuck', reason: 'unproved', problem: 'it may be kept' } as const;
    await it.sidecar.journal.put({ ...recordOf(2), ...stuck }, never);
    const { code, stdout } = await it.run(['list']);
    assert.equal(code, 2, 'one is stuck');
    assert.match(stdout, new RegExp(`ns/claim-1 .*pvc-${uidOf(1)} .*create .*the driver is creating it`));
    assert.match(stdout, /ns\/claim-2 .*stuck .* unproved: it may be kept\n/);
    assert.match(stdout, /ns\/drv-example-com: open records: 2; of which are stuck: 1\.\n$/);
    const json = await it.run(['list', '-o', 'json']);
    const { records } = JSON.parse(json.stdout) as { records: ListedRecord[] };
    assert.deepEqual(
      records.map(({ uid, phase, reason, waitsFor }) => [uid, phase, reason, waitsFor]).sort(),
      [
        [uidOf(1), 'create', undefined, 'the driver is creating it, or is about to'],
        [uidOf(2), 'stuck', 'unproved', 'it may be kept'],
      ].sort(),
    );
  });

  test('shows a record of a copied journal as stuck, whatever it waited for', async () => {
    await using it = await scene();
    await it.sidecar.journal.put(recordOf(1), never);
    await it.sidecar.stop();
    const name = { namespace: 'ns', name: 'drv-example-com-journal-0' };
    const { annotations = {} } = it.cluster.api.get(leaseResource, name)!.metadata;
    it.cluster.api.delete(leaseResource, name);
    it.cluster.api.create(leaseResource, { metadata: { ...name, annotations } });
    const { code, stdout } = await it.run(['list']);
    assert.equal(code, 2);
    assert.match(stdout, /ns\/claim-1 .*stuck .* restored: the journal is a copy, such as a restored backup\n/);
  });

  test('says where it has looked when there is no journal', async () => {
    await using it = await scene({ lockName: 'other' });
    const { code, stderr } = await it.run(['list']);
    assert.equal(code, 3);
    assert.match(stderr, /there is no Lease ns\/drv-example-com-journal-0; is --leader-election-namespace/);
  });
});

describe('csi-provisioner journal drain', () => {
  test('ends at once where nothing is open, and the next new record meets the mark', async () => {
    await using it = await scene();
    const { code, stdout } = await it.run(['drain']);
    assert.equal(code, 0);
    assert.match(stdout, /The journal is empty, and no new volume is begun/);
    await it.sidecar.journal.put(recordOf(1), never);
    assert.equal(it.sidecar.journal.isDraining, true);
  });

  test('holds for a record that is too large to be written', async () => {
    await using it = await scene();
    await it.run(['drain']);
    const tooLarge = recordOf(1, { plan: { filler: randomBytes(200_000).toString('hex') } });
    assert.equal(await it.sidecar.journal.put(tooLarge, never), 'unprotected');
    assert.equal(it.sidecar.journal.isDraining, true);
  });

  test('waits for the records that are open, in every shard', async () => {
    await using it = await scene();
    for (const n of [1, 2, 3, 4])
      await it.sidecar.journal.put(recordOf(n, { plan: { filler: randomBytes(40_000).toString('hex') } }), never);
    assert.ok(it.cluster.shards.length > 1, 'several shards');
    const draining = it.run(['drain']);
    await eventually(() => assert.ok(isMarked(it), 'every shard is marked'));
    for (const n of [1, 2, 3, 4]) it.sidecar.journal.remove(uidOf(n));
    const { code, stdout } = await draining;
    assert.equal(code, 0, stdout);
    assert.ok(isMarked(it), 'the writes of the sidecar keep the marks');
  });

  test('does not end at once while a Lease that the journal names does not exist: its first volumes would not meet the mark', async () => {
    await using it = await scene();
    for (const n of [1, 2, 3, 4])
      await it.sidecar.journal.put(recordOf(n, { plan: { filler: randomBytes(40_000).toString('hex') } }), never);
    for (const n of [1, 2, 3, 4]) await it.sidecar.journal.removeNow(uidOf(n), never);
    await it.sidecar.stop();
    const last = it.cluster.shards.at(-1);
    it.cluster.api.delete(leaseResource, { namespace: 'ns', name: last?.metadata.name ?? '' });
    const { code, stdout } = await it.run(['drain', '--wait=10ms']);
    assert.equal(code, 2, stdout);
    assert.match(stdout, /Leases of the journal do not exist: 1\. A running sidecar may create them/);
  });

  test('says what is stuck', async () => {
    await using it = await scene();
    await it.sidecar.journal.put({ ...recordOf(1, { phase: 'stuck' }), problem: 'nobody knows' }, never);
    const { code, stdout } = await it.run(['drain']);
    assert.equal(code, 2);
    assert.match(stdout, /stuck .*nobody knows/);
    assert.match(stdout, /What is left is stuck/);
  });

  test('gives up after the wait, and says that records are still open', async () => {
    await using it = await scene();
    await it.sidecar.journal.put(recordOf(1), never);
    const { code, stdout } = await it.run(['drain', '--wait=10ms']);
    assert.equal(code, 2);
    assert.match(stdout, /1 records are still open: does a sidecar run/);
  });

  test('is ended by --resume, which the sidecar notices', async () => {
    await using it = await scene();
    await it.run(['drain']);
    await it.sidecar.journal.put(recordOf(1), never);
    assert.equal(it.sidecar.journal.isDraining, true);
    const { code } = await it.run(['drain', '--resume']);
    assert.equal(code, 0);
    await eventually(() => assert.ok(it.sidecar.heard.includes('drain ended')));
    assert.equal(it.sidecar.journal.isDraining, false);
    assert.deepEqual(
      it.sidecar.log.map(({ message }) => message).filter((each) => each.includes('drained')),
      [
        'The intent journal is being drained: no new volume is begun',
        'The intent journal is not drained any more: new volumes are begun again',
      ],
    );
  });

  test('holds for a sidecar that starts later', async () => {
    await using it = await scene();
    await it.run(['drain']);
    await it.sidecar.stop();
    const next = await it.cluster.open({ lockName: 'drv-example-com' });
    assert.equal(next.journal.isDraining, true);
  });
});

describe('csi-provisioner journal discard', () => {
  test('has the sidecar forget a record that is stuck', async () => {
    await using it = await scene();
    await it.sidecar.journal.put({ ...recordOf(1, { phase: 'stuck' }), problem: 'nobody knows' }, never);
    const { code, stderr } = await it.run(['discard', '--uid', uidOf(1)], 'yes');
    assert.equal(code, 0);
    assert.match(stderr, /If one is left in the storage system, it stays there:\n {2}pvc-/);
    await it.sidecar.journal.put(recordOf(2), never); // meets the mark; without a write it is seen within a minute
    await eventually(() => assert.ok(it.sidecar.heard.includes('discarded 01')));
  });

  test('refuses one that the sidecar works on, and then discards none', async () => {
    await using it = await scene();
    await it.sidecar.journal.put(recordOf(1), never);
    await it.sidecar.journal.put({ ...recordOf(2, { phase: 'stuck' }), problem: 'nobody knows' }, never);
    const { code, stderr } = await it.run(['discard', '--yes', '--uid', uidOf(1), uidOf(2), 'nothing']);
    assert.equal(code, 1);
    assert.match(
      stderr,
      new RegExp(`${uidOf(1)}: the sidecar is still working on it\nnothing: there is no such record`),
    );
    assert.equal(it.cluster.shards[0]?.metadata.annotations?.['csi-provisioner.journal/discard'], undefined);
  });

  test('changes nothing when the operator does not agree', async () => {
    await using it = await scene();
    await it.sidecar.journal.put({ ...recordOf(1, { phase: 'stuck' }), problem: 'nobody knows' }, never);
    const { code } = await it.run(['discard', '--uid', uidOf(1)], 'no');
    assert.equal(code, 0);
    assert.equal(it.cluster.shards[0]?.metadata.annotations?.['csi-provisioner.journal/discard'], undefined);
  });
});

describe('csi-provisioner journal adopt', () => {
  const from = ['adopt', '--from=ns/drv-example-com.n1', '--silence=20ms', '--yes'];

  /** A journal of the same driver under another name, whose process has ended. */
  async function leave(it: Scene, ...numbers: number[]): Promise<void> {
    const former = await it.cluster.open({ lockName: 'drv-example-com.n1', writer: 'former' });
    for (const n of numbers) await former.journal.put(recordOf(n), never);
    await former.stop();
  }

  test('has the sidecar take over the records of a journal that nobody works on', async () => {
    await using it = await scene();
    await leave(it, 1, 2);
    const { code, stdout } = await it.run(from);
    assert.equal(code, 0, stdout);
    assert.match(stdout, /Records taken: 2; left where they are: 0\./);
    await it.sidecar.journal.put(recordOf(3), never); // meets them; without a write they are seen within a minute
    await eventually(() =>
      assert.deepEqual(it.sidecar.heard.filter((each) => each.startsWith('own')).sort(), [
        'own claim-1',
        'own claim-2',
      ]),
    );
    assert.deepEqual(it.sidecar.found.get(uidOf(1))?.record, recordOf(1));
    const { stdout: left } = await it.run(['list', '-o', 'json']);
    assert.equal((JSON.parse(left) as { records: unknown[] }).records.length, 3);
    assert.equal((await it.run(from)).stdout, 'Records taken: 0; left where they are: 0.\n', 'a repeat');
  });

  test('finds them without a write of its own, too', async () => {
    await using clockless = await scene({ exclusive: false, adoptAfterMs: 100 });
    await clockless.sidecar.journal.put(recordOf(3), never);
    await leave(clockless, 1);
    assert.equal((await clockless.run(from)).code, 0);
    await eventually(() => assert.ok(clockless.sidecar.heard.includes('own claim-1')));
  });

  test('takes nothing while a process holds the Lease', async () => {
    await using it = await scene();
    await leave(it, 1);
    it.cluster.api.create(leaseResource, {
      metadata: { namespace: 'ns', name: 'drv-example-com.n1' },
      spec: { holderIdentity: 'pod-7', leaseDurationSeconds: 15, renewTime: new Date().toISOString() },
    });
    const { code, stderr } = await it.run(from);
    assert.equal(code, 3);
    assert.match(stderr, /pod-7 holds the Lease ns\/drv-example-com\.n1: end that sidecar first/);
    assert.equal(it.sidecar.found.size, 0);
  });

  test('takes nothing while the journal is written', async () => {
    await using it = await scene();
    const other = await it.cluster.open({
      lockName: 'drv-example-com.n1',
      writer: 'other',
      exclusive: false,
      roundMs: 5,
    });
    await other.journal.put(recordOf(1), never);
    const { code, stderr } = await it.run(['adopt', '--from=ns/drv-example-com.n1', '--silence=500ms', '--yes']);
    assert.equal(code, 3);
    assert.match(stderr, /ns\/drv-example-com\.n1 is still written: end the sidecar that works on it first/);
  });

  test('leaves a record whose claim has one already', async () => {
    await using it = await scene();
    await it.sidecar.journal.put(recordOf(1), never);
    await leave(it, 1, 2);
    const { code, stdout } = await it.run(from);
    assert.equal(code, 2);
    assert.match(stdout, /Records taken: 1; left where they are: 1\./);
  });

  test('of what was taken twice, as after an interruption, nothing is doubled', async () => {
    await using it = await scene();
    await leave(it, 1);
    const copy = it.cluster.api.get(leaseResource, { namespace: 'ns', name: 'drv-example-com.n1-journal-0' });
    const text = copy?.metadata.annotations?.[prefix + uidOf(1)] ?? '';
    assert.equal((await it.run(from)).code, 0);
    const emptied = it.cluster.api.get(leaseResource, { namespace: 'ns', name: 'drv-example-com.n1-journal-0' })!;
    const annotations = { ...emptied.metadata.annotations, [prefix + uidOf(1)]: text };
    it.cluster.api.update(leaseResource, { ...emptied, metadata: { ...emptied.metadata, annotations } });
    assert.equal((await it.run(from)).code, 2, 'the sidecar has it');
    const { stdout } = await it.run(['list', '-o', 'json']);
    assert.equal((JSON.parse(stdout) as { records: unknown[] }).records.length, 1);
  });
});

describe('the arguments of csi-provisioner journal', () => {
  for (const [args, problem] of [
    [[], /the first argument must be one of list, drain, discard, adopt, got none/],
    [['erase'], /the first argument must be one of .*, got "erase"/],
    [['list', '--resume'], /--resume is a flag of drain, not of list/],
    [['discard', '--yes'], /discard needs --uid/],
    [['discard', '--uid', 'a,b', '--yes'], /--uid must be followed by UIDs of claims/],
    [['discard', '--uid', 'a'], /discard cannot ask for confirmation without a terminal: add --yes/],
    [['adopt', '--yes'], /adopt needs --from NAMESPACE\/NAME/],
    [['adopt', '--from=x', '--yes'], /--from must be NAMESPACE\/NAME, got "x"/],
    [['adopt', '--from=ns/drv-example-com', '--yes'], /--from is the journal of the sidecar itself/],
    [['drain', '--wait=long'], /--wait must be a duration such as 1m or 90s, got "long"/],
    [['list', 'more'], /unexpected argument "more"/],
    [['list', '--intent-journal=off'], /--intent-journal=off: there is no journal/],
  ] as const) {
    test(`are refused, as in: ${args.join(' ')}`, async () => {
      await using it = await scene();
      const { code, stderr } = await it.run(args);
      assert.notEqual(code, 0);
      assert.match(stderr, problem);
    });
  }
});
