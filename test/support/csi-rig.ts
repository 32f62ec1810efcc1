/** A `CsiProvisioner` between a real driver socket and a real HTTP API, with the objects of the black-box cases. */
import assert from 'node:assert/strict';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger, type Logger } from '../../src/base/logger.ts';
import { connect } from '../../src/kube/client/connect.ts';
import { KubeClient } from '../../src/kube/client/kube-client.ts';
import type { ObjectReference } from '../../src/kube/kube-object.ts';
import { Store } from '../../src/kube/cache/store.ts';
import type { Transport } from '../../src/kube/client/transport.ts';
import { attachedVolume, attachmentsByVolume, type VolumeAttachment } from '../../src/csi/attachments.ts';
import { CsiConnection } from '../../src/csi/connection.ts';
import { csiCalls, type CsiCalls } from '../../src/csi/csi-calls.ts';
import { loadCsi } from '../../src/csi/csi-proto.ts';
import { CsiProvisioner } from '../../src/csi/csi-provisioner.ts';
import type { CsiProvisionerOptions } from '../../src/csi/csi-provisioner-options.ts';
import { driverCapabilities, readCapabilities } from '../../src/csi/driver-info.ts';
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  ReferenceGrant,
  StorageClass,
} from '../../src/provision/objects.ts';
import type { FinishedCall } from '../../src/csi/unary-call.ts';
import { volumeName } from '../../src/csi/create/validate-claim.ts';
import { ProvisionError, type ProvisionOptions } from '../../src/provision/provisioner.ts';
import { Attempts } from './attempts.ts';
import { ScriptedApiServer } from './fakes/api-server.ts';
import { RecordingDriver } from './fakes/recording-driver.ts';

export const csi = loadCsi();
export const driverName = 'd.example.com';
export const identity = `1763640000000-1234-${driverName}`;
/** UID of the claim in the cases. */
export const uid = '1e8d6a5c-0b7f-4c3e-9a2d-5f6e7a8b9c0d';
/** 5Gi. */
export const gi5 = '5368709120';

export type ClaimSpec = PersistentVolumeClaim['spec'];

/** `ns1/c1` of 5Gi, ReadWriteOnce, for class `sc`. */
export function makeClaim(
  spec: Partial<ClaimSpec> = {},
  metadata: Partial<PersistentVolumeClaim['metadata']> = {},
): PersistentVolumeClaim {
  return {
    metadata: {
      name: 'c1',
      namespace: 'ns1',
      uid,
      resourceVersion: '731',
      annotations: { 'volume.kubernetes.io/storage-provisioner': driverName },
      ...metadata,
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '5Gi' } },
      storageClassName: 'sc',
      volumeMode: 'Filesystem',
      ...spec,
    },
    status: { phase: 'Pending' },
  };
}

/** Class `sc` of the driver. */
export function makeClass(parameters: Record<string, string> = {}, more: Partial<StorageClass> = {}): StorageClass {
  return {
    metadata: { name: 'sc', uid: 'class-uid' },
    provisioner: driverName,
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'Immediate',
    parameters,
    ...more,
  };
}

export interface RecordedEvent {
  about: ObjectReference;
  type: string;
  reason: string;
  message: string;
}

export interface RigOptions {
  plugin?: string[];
  controller?: string[];
  timeoutMs?: number;
  logger?: Logger;
  settings?: Partial<CsiProvisionerOptions>;
}

/** What an attempt ended with. */
export type Outcome =
  | { volume: PersistentVolume; error?: undefined }
  | { volume?: undefined; error: Error; state: string; infeasible: boolean };

/** Everything one case needs; dispose it. */
export class Rig implements AsyncDisposable {
  readonly driver: RecordingDriver;
  readonly api: ScriptedApiServer;
  readonly connection: CsiConnection;
  readonly calls: CsiCalls;
  readonly settings: CsiProvisionerOptions;
  readonly provisioner: CsiProvisioner;
  readonly events: RecordedEvent[] = [];
  readonly finishedCalls: FinishedCall[] = [];
  readonly claims: Store<PersistentVolumeClaim>;
  readonly classes: Store<StorageClass>;
  readonly attachments: Store<VolumeAttachment>;
  readonly grants: Store<ReferenceGrant>;
  readonly #attempts: Attempts;
  #opened = new AsyncDisposableStack();
  #capabilities = driverCapabilities([], []);

  private constructor(parts: Pick<Rig, 'driver' | 'api' | 'connection'>, options: RigOptions, transport: Transport) {
    const logger = options.logger ?? silentLogger;
    const clock = systemClock;
    this.driver = parts.driver;
    this.api = parts.api;
    this.connection = parts.connection;
    this.claims = new Store({ logger, freeze: true });
    this.classes = new Store({ logger, freeze: true });
    this.grants = new Store({ logger, freeze: true });
    this.attachments = new Store({ logger, freeze: true, indexers: { [attachmentsByVolume]: attachedVolume } });
    const timeoutMs = options.timeoutMs ?? 10_000;
    this.calls = csiCalls(csi, {
      connection: parts.connection,
      timeoutMs,
      logger,
      clock,
      onCall: (call) => this.finishedCalls.push(call),
    });
    this.settings = {
      driverName,
      identity,
      capabilities: () => this.#capabilities,
      controller: this.calls,
      client: new KubeClient({ transport, fieldManager: 'test' }),
      claims: this.claims,
      classes: this.classes,
      attachments: this.attachments,
      recorder: {
        event: (about, type, reason, message) => this.events.push({ about, type, reason, message }),
      },
      logger,
      clock,
      timeoutMs,
      volumeNamePrefix: 'pvc',
      volumeNameUuidLength: -1,
      defaultFsType: '',
      extraCreateMetadata: false,
      controllerPublishReadOnly: false,
      preventVolumeModeConversion: true,
      gates: { crossNamespaceVolumeDataSource: false, volumeAttributesClass: true },
      referenceGrants: this.grants,
      ...options.settings,
    };
    this.provisioner = new CsiProvisioner(this.settings);
    this.#attempts = new Attempts(this.provisioner);
  }

  static async start(options: RigOptions = {}): Promise<Rig> {
    const clock = systemClock;
    const logger = options.logger ?? silentLogger;
    const { plugin, controller } = options;
    await using opened = new AsyncDisposableStack();
    const driver = opened.use(
      await RecordingDriver.start({
        name: driverName,
        plugin,
        controller,
      }),
    );
    const api = opened.use(await ScriptedApiServer.start());
    const connection = opened.use(new CsiConnection({ address: driver.socketPath, logger, clock }));
    await connection.connect();
    const transport = opened.use(connect({ master: api.url, environment: {}, userAgent: 'test', logger }));
    const rig = new Rig({ driver, api, connection }, options, transport);
    // Not with the timeout under test: on a busy machine a short one would end the preparations.
    rig.#capabilities = await readCapabilities(rig.calls, { timeoutMs: 20_000 });
    rig.finishedCalls.length = 0;
    driver.calls.length = 0;
    rig.#opened = opened.move();
    return rig;
  }

  /** What the controller hands to an attempt: the name comes from its hook, which never fails. */
  options(claim = makeClaim(), storageClass = makeClass(), selectedNodeName = ''): ProvisionOptions {
    const { volumeNamePrefix, volumeNameUuidLength } = this.settings;
    let name = `pvc-${uid}`;
    try {
      name = volumeName(volumeNamePrefix, claim.metadata.uid, volumeNameUuidLength);
    } catch {
      // the attempt itself fails on it
    }
    return { claim, storageClass, volumeName: name, selectedNodeName };
  }

  /** One attempt, as the controller makes it: after one with an unclear result the same plan is fulfilled again. */
  async provision(
    claim: PersistentVolumeClaim = makeClaim(),
    storageClass: StorageClass = makeClass(),
    more: { selectedNodeName?: string; signal?: AbortSignal } = {},
  ): Promise<Outcome> {
    const { selectedNodeName = '', signal = new AbortController().signal } = more;
    try {
      const options = this.options(claim, storageClass, selectedNodeName);
      return { volume: await this.#attempts.make(options, { signal }) };
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const { state, infeasible } = error instanceof ProvisionError ? error : { state: error.name, infeasible: false };
      return { error, state, infeasible };
    }
  }

  /** Request of the only CreateVolume call. */
  get createRequest(): Record<string, unknown> {
    const [call, ...more] = this.driver.callsOf('CreateVolume');
    if (call === undefined || more.length > 0)
      throw new Error(`CreateVolume was called ${more.length} times more or never`);
    return call.request;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }
}

/** The attempt failed in this state, with a text that holds `telling`. */
export function assertFailed(outcome: Outcome, state: string, telling: string): void {
  assert.ok(outcome.error !== undefined, 'the attempt should have failed');
  assert.ok(outcome.error.message.includes(telling), `${outcome.error.message}\nshould hold\n${telling}`);
  assert.equal(outcome.state, state);
}

/** The attempt succeeded; its volume. */
export function volumeOf(outcome: Outcome): PersistentVolume {
  if (outcome.error !== undefined) throw outcome.error;
  return outcome.volume;
}

/** The driver was not asked to make anything. */
export function assertNoCreate(rig: Rig): void {
  assert.deepEqual(rig.driver.callsOf('CreateVolume'), []);
}

/** Base64 of a text, as in a Secret's `data`. */
export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
