/** The journal as the sidecar puts it together. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRegistry } from '../../../src/base/metrics.ts';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { controllerMetrics, type FeatureOptions } from '../../../src/cli/run-phase-options.ts';
import { sidecarJournal } from '../../../src/cli/sidecar-journal.ts';
import type { IntentJournal, JournalListener } from '../../../src/provision/intent-journal/intent-journal.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { SandboxApi } from '../../support/sandbox-api.ts';
import { recordOf, silentListener, uidOf } from '../provision/intent-journal/rig.ts';

const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };

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
