/** `csi-provisioner audit` between a real driver socket, a real API server and a journal that a sidecar has written. */
import { PassThrough } from 'node:stream';
import type { Clock } from '../../../src/base/clock.ts';
import { auditVolumes } from '../../../src/cli/audit-command.ts';
import type { TextInput } from '../../../src/cli/subcommand-call.ts';
import { SubcommandError } from '../../../src/cli/subcommand-call.ts';
import type { Finding } from '../../../src/audit/finding.ts';
import type { IntentRecord } from '../../../src/provision/intent-journal/intent-journal.ts';
import { type RecordedCall, RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { type Process, Rig as JournalRig, never } from '../provision/intent-journal/rig.ts';

export const driverName = 'drv.example.com';
const volumesRef = { group: '', version: 'v1', plural: 'persistentvolumes' };

export interface AuditRun {
  code: number;
  stdout: string;
  stderr: string;
}

export interface AuditReport {
  driver: string;
  looks: number;
  counts: Record<string, number | null>;
  findings: (Omit<Finding, 'capacityBytes'> & {
    ageSeconds: number | null;
    capacityBytes: number | null;
    command: string | null;
  })[];
  incomplete: string[];
  notes: string[];
  deletions: { volumeId: string; result: string; detail: string }[];
}

export interface RigOptions {
  name?: string;
  controller?: (string | number)[];
  plugin?: string[];
  /** Of the sidecar's journal. */
  clock?: Clock;
}

/** Dispose it. */
export class AuditRig implements AsyncDisposable {
  readonly cluster: JournalRig;
  readonly driver: RecordingDriver;
  /** The sidecar's journal. */
  readonly sidecar: Process;

  private constructor(parts: Pick<AuditRig, 'cluster' | 'driver' | 'sidecar'>) {
    this.cluster = parts.cluster;
    this.driver = parts.driver;
    this.sidecar = parts.sidecar;
  }

  static async start({ controller, plugin, clock, name = driverName }: RigOptions = {}): Promise<AuditRig> {
    await using opened = new AsyncDisposableStack();
    const cluster = opened.use(await JournalRig.start());
    const driver = opened.use(
      await RecordingDriver.start({
        name,
        controller: controller ?? ['CREATE_DELETE_VOLUME', 'LIST_VOLUMES'],
        plugin,
      }),
    );
    const sidecar = await cluster.open({ lockName: name.replaceAll('.', '-'), ...(clock && { clock }) });
    opened.move();
    return new AuditRig({ cluster, driver, sidecar });
  }

  async put(...records: IntentRecord[]): Promise<void> {
    for (const record of records) await this.sidecar.journal.put(record, never);
  }

  /** A bound PersistentVolume that the sidecar made; `more` wins over what is usual. */
  addVolume(
    name: string,
    volumeHandle: string,
    more: { annotations?: Record<string, string>; spec?: object } = {},
  ): void {
    const { annotations = { 'pv.kubernetes.io/provisioned-by': driverName }, spec } = more;
    this.cluster.api.create(volumesRef, {
      metadata: { name, annotations },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        csi: { driver: driverName, volumeHandle },
        claimRef: { namespace: 'ns', name: `claim-of-${name}`, uid: `uid-of-${name}` },
        ...spec,
      },
    });
  }

  removeVolume(name: string): void {
    this.cluster.api.delete(volumesRef, { name });
  }

  /** What the driver has: ids alone, as a driver may answer that knows no more. */
  lists(...ids: string[]): void {
    this.driver.always('ListVolumes', ({ request }: RecordedCall) => {
      const { max_entries: max = 0, starting_token: token = '' } = request as {
        max_entries?: number;
        starting_token?: string;
      };
      const start = Number(token || '0');
      const end = max === 0 ? ids.length : start + max;
      const entries = ids.slice(start, end).map((volume_id) => ({ volume: { volume_id } }));
      return end < ids.length ? { entries, next_token: String(end) } : { entries };
    });
  }

  /** Runs the subcommand; with `answer` at a terminal where somebody types that, and with an empty one only ends the input. */
  async run(
    flags: readonly string[],
    { answer, signal = never }: { answer?: string; signal?: AbortSignal } = {},
  ): Promise<AuditRun> {
    let [stdout, stderr] = ['', ''];
    const typed = new PassThrough();
    if (answer !== undefined) typed.end(answer === '' ? '' : `${answer}\n`);
    const stdin: TextInput = Object.assign(typed, { isTTY: answer !== undefined });
    const code = await auditVolumes({
      program: 'csi-provisioner audit',
      args: [
        `--csi-address=${this.driver.socketPath}`,
        `--master=${this.cluster.url}`,
        '--leader-election-namespace=ns',
        '--second-look=1ms',
        ...flags,
      ],
      environment: { NODE_NAME: 'n1' },
      stdin,
      stdout: { write: (text) => (stdout += text) },
      stderr: { write: (text) => (stderr += text) },
      signal,
    }).catch((error: unknown) => {
      if (!(error instanceof SubcommandError)) throw error;
      stderr += error.message;
      return error.exitCode;
    });
    return { code, stdout, stderr };
  }

  /** Runs it for a program. */
  async report(...flags: string[]): Promise<AuditReport & { code: number }> {
    const { code, stdout, stderr } = await this.run(['-o', 'json', ...flags]);
    if (stdout === '') throw new Error(`no report: ${stderr}`);
    return { ...(JSON.parse(stdout) as AuditReport), code };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.driver[Symbol.asyncDispose]();
    await this.cluster[Symbol.asyncDispose]();
  }
}

/** State and id of each finding, in order. */
export function states({ findings }: { findings: readonly Pick<Finding, 'state' | 'volumeId'>[] }): string[] {
  return findings.map(({ state, volumeId }) => `${state} ${volumeId ?? '-'}`);
}
