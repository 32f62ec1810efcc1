/** The journal as the sidecar puts it together, and what earlier settings have left. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRegistry } from '../../../src/base/metrics.ts';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { otherJournalsFeature, sidecarJournal } from '../../../src/cli/features/journal-features.ts';
import { controllerMetrics, type FeatureOptions } from '../../../src/cli/run-phase-options.ts';
import { leases } from '../../../src/kube/election/lease-record.ts';
import { clusterJournal } from '../../../src/provision/intent-journal/cluster-journal.ts';
import type { IntentJournal, JournalListener } from '../../../src/provision/intent-journal/intent-journal.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { SandboxApi } from '../../support/sandbox-api.ts';
import { never, recordOf, silentListener, uidOf } from '../provision/intent-journal/rig.ts';

class Scene implements AsyncDisposable {
  readonly clock = new ManualClock({ turns: 60 });
  readonly registry = createRegistry();
  readonly lines: LogLine[] = [];
  readonly options: FeatureOptions;
  readonly api: SandboxApi;
  readonly ending = new AbortController();

  private constructor(api: SandboxApi, flags: readonly string[], driver: string) {
    this.api = api;
    const environment = { POD_NAMESPACE: 'ns1', NODE_NAME: 'n1' };
    const parsed = parseCommandLine({ argv0: 'x', args: flags, environment, version: 'v0' });
    assert.equal(parsed.kind, 'run');
    const { config } = parsed;
    this.options = {
      ...{ config, client: api.client, clock: this.clock, logger: recordedLogger(this.lines) },
      driver: { name: driver },
      metrics: controllerMetrics(this.registry, config, this.clock),
    } as unknown as FeatureOptions;
  }

  static async start(...flags: string[]): Promise<Scene> {
    return new Scene(await SandboxApi.start(), flags, 'drv.example.com');
  }

  /** The sidecar of another driver on the same API server. */
  beside(driver: string, ...flags: string[]): Scene {
    return new Scene(this.api, flags, driver);
  }

  get journal(): IntentJournal {
    return sidecarJournal(this.options) ?? assert.fail('there is no journal');
  }

  /** Opens the journal and writes the record of the first claim. */
  async write(): Promise<string> {
    const { journal } = this;
    await journal.open(silentListener, this.ending.signal);
    return await journal.put(recordOf(1), this.ending.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.ending.abort(new Error('the test is over'));
    await this.api[Symbol.asyncDispose]();
  }
}

describe('the journal of the sidecar', () => {
  test('is in Leases beside the lock, and its writes are counted', async () => {
    await using scene = await Scene.start();
    assert.equal(await scene.write(), 'durable');
    const lease = scene.api.own.get(leases, { namespace: 'ns1', name: 'drv-example-com-journal-0' });
    assert.ok(lease?.metadata.annotations?.[`csi-provisioner.journal/${uidOf(1)}`] !== undefined);
    const page = await scene.registry.metrics();
    assert.match(page, /^intent_journal_written_bytes_total [1-9]/m);
    assert.match(page, /^intent_journal_protected 1$/m);
  });

  test('is on a node in Leases of the node', async () => {
    await using scene = await Scene.start('--node-deployment');
    assert.equal(await scene.write(), 'durable');
    const lease = scene.api.own.get(leases, { namespace: 'ns1', name: 'drv-example-com.n1-journal-0' });
    assert.ok(lease?.metadata.annotations?.[`csi-provisioner.journal/${uidOf(1)}`] !== undefined);
  });

  test('has the name of that of a driver whose name differs in punctuation, whose records it leaves alone', async () => {
    await using scene = await Scene.start('--leader-election');
    assert.equal(await scene.write(), 'durable');
    const other = scene.beside('drv-example.com', '--leader-election');
    const found: string[] = [];
    const noteFound: JournalListener['onFound'] = ({ record }) => void found.push(record.claim.name);
    await other.journal.open({ ...silentListener, onFound: noteFound }, scene.ending.signal);
    assert.deepEqual(found, []);
    assert.match(JSON.stringify(other.lines), /holds records of another provisioner.*/);
    await scene.journal.open({ ...silentListener, onFound: noteFound }, scene.ending.signal);
    assert.deepEqual(found, ['claim-1']);
  });

  test('is not there where it is off', async () => {
    await using scene = await Scene.start('--intent-journal=off');
    assert.equal(sidecarJournal(scene.options), undefined);
  });

  test('that may not be written shows in the metrics', async () => {
    await using scene = await Scene.start();
    const action = {
      type: 'status',
      code: 403,
      reason: 'Forbidden',
      message: 'is forbidden: User "u" cannot',
    } as const;
    scene.api.server.faults.add({ match: { resource: 'leases' }, action });
    const { journal } = scene;
    const opened = journal.open(silentListener, scene.ending.signal);
    await eventually(async () => {
      await scene.clock.advance(1000);
      assert.match(await scene.registry.metrics(), /^intent_journal_protected 0$/m);
    });
    await opened;
    assert.equal(await journal.put(recordOf(1), scene.ending.signal), 'unprotected');
  });
});

const hourMs = 3_600_000;
const line = 'The intent journal of other settings holds records of volumes, which this process does not act on';

/** Journals where the sidecar had its own before its flags were changed. */
class FormerSettings implements AsyncDisposable {
  readonly api: SandboxApi;
  readonly clock = new ManualClock({ turns: 60 });
  readonly lines: LogLine[] = [];
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined = undefined;

  constructor(api: SandboxApi) {
    this.api = api;
  }

  /** The journal of a sidecar with other flags, which wrote these records and ended. */
  async leave({
    namespace = 'ns1',
    lockName = 'drv-example-com',
    records = [1],
    provisioner = 'drv.example.com',
  }: {
    namespace?: string;
    lockName?: string;
    records?: number[];
    provisioner?: string;
  }): Promise<void> {
    const journal = clusterJournal({
      client: this.api.client,
      namespace,
      lockName,
      isKnownProvisioner: () => true,
      exclusive: true,
      clock: this.clock,
      logger: recordedLogger([]),
    });
    await journal.open(silentListener, never);
    for (const n of records) {
      const record = recordOf(n);
      await journal.put({ ...record, volume: { ...record.volume, provisioner } }, never);
    }
  }

  /** Starts the sidecar. */
  start(flags: readonly string[], environment: Record<string, string> = {}): void {
    const parsed = parseCommandLine({ argv0: 'x', args: flags, environment, version: 'v0' });
    assert.equal(parsed.kind, 'run');
    const feature = otherJournalsFeature({
      config: parsed.config,
      driver: { name: 'drv.example.com' },
      client: this.api.client,
      clock: this.clock,
      logger: recordedLogger(this.lines),
    } as unknown as FeatureOptions);
    this.#running = feature?.run?.({ stop: this.#stop.signal, abort: this.#stop.signal });
  }

  /** What was warned of. */
  get warned(): unknown[] {
    const lines = this.lines.filter(({ level }) => level !== 'debug');
    for (const { message } of lines) assert.equal(message, line);
    return lines.map(({ fields }) => fields);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the test is over'));
    await this.#running;
    await this.api[Symbol.asyncDispose]();
  }
}

async function formerSettings(): Promise<FormerSettings> {
  return new FormerSettings(await SandboxApi.start());
}

describe('records that were left before a flag was changed', () => {
  test('are named once after --leader-election-namespace was set', async () => {
    await using rig = await formerSettings();
    const { api, clock } = rig;
    await rig.leave({ namespace: 'ns1', records: [1, 2] });
    const name = { namespace: 'ns1', name: 'drv-example-com-journal-0' };
    const before = api.own.get(leases, name);
    rig.start(['--leader-election-namespace=ns2'], { POD_NAMESPACE: 'ns1' });
    await clock.until(() => rig.warned.length > 0);
    assert.deepEqual(rig.warned, [{ lease: 'ns1/drv-example-com-journal-0', records: 2 }]);
    assert.deepEqual(api.own.get(leases, name), before, 'nothing of it is adopted');
    await clock.advance(hourMs);
    assert.equal(rig.warned.length, 1);
    assert.equal(clock.pending, 0, 'it does not look any more');
  });

  test('are named after node deployment was set, and after it was removed', async () => {
    for (const [lockName, flags] of [
      ['drv-example-com', ['--node-deployment']],
      ['drv-example-com.n1', []],
    ] as const) {
      await using rig = await formerSettings();
      await rig.leave({ lockName });
      rig.start(flags, { POD_NAMESPACE: 'ns1', NODE_NAME: 'n1' });
      await rig.clock.until(() => rig.warned.length > 0);
      assert.deepEqual(rig.warned, [{ lease: `ns1/${lockName}-journal-0`, records: 1 }]);
    }
  });

  test('are not those of the own journal, of another provisioner, or of an empty journal', async () => {
    await using rig = await formerSettings();
    await rig.leave({ namespace: 'ns1', provisioner: 'other.example.com' });
    await rig.leave({ namespace: 'ns2', lockName: 'drv-example-com.n1', records: [] });
    await rig.leave({ namespace: 'ns2' });
    rig.start(['--leader-election-namespace=ns2'], { POD_NAMESPACE: 'ns1' });
    await rig.clock.advance(2 * hourMs);
    assert.deepEqual(rig.warned, []);
    assert.equal(rig.clock.pending, 0);
  });

  test('are not named without the right to read them: nothing is logged but for debugging', async () => {
    await using rig = await formerSettings();
    await rig.leave({ namespace: 'ns1' });
    const message = 'leases.coordination.k8s.io is forbidden: User "x" cannot get resource "leases"';
    const action = { type: 'status', code: 403, reason: 'Forbidden', message } as const;
    const forbidden = rig.api.server.faults.add({ match: { resource: 'leases', namespace: 'ns1' }, action });
    rig.start(['--leader-election-namespace=ns2'], { POD_NAMESPACE: 'ns1' });
    await rig.clock.until(() => rig.lines.length > 0);
    assert.ok(forbidden.hits > 0);
    assert.deepEqual(rig.warned, []);
  });

  test('are not looked for without a journal', async () => {
    await using rig = await formerSettings();
    await rig.leave({ namespace: 'ns1' });
    const before = rig.api.server.requestLog.entries({ resource: 'leases' }).length;
    rig.start(['--leader-election-namespace=ns2', '--intent-journal=off'], { POD_NAMESPACE: 'ns1' });
    await rig.clock.advance(hourMs);
    assert.equal(rig.api.server.requestLog.entries({ resource: 'leases' }).length, before);
  });
});
