import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { CheckResult, Status } from './check.ts';
import type { StringMap } from './csi-messages.ts';

export interface SanityOptions {
  /** The program; empty: the one of PATH. */
  readonly program: string;
  readonly socketPath: string;
  readonly classParameters: StringMap;
  readonly secrets: StringMap;
  readonly sizeBytes: bigint;
  readonly signal: AbortSignal;
}

/** What ginkgo's JSON report says of a test. */
interface SpecReport {
  readonly ContainerHierarchyTexts: string[] | null;
  readonly LeafNodeText: string;
  readonly LeafNodeType: string;
  readonly State: string;
  readonly RunTime?: number;
  readonly Failure?: { readonly Message?: string };
}

const maxMs = 30 * 60_000;
const maxMessage = 2000;

/** Runs csi-sanity, the CSI community's own suite. @returns a result for each of its tests; one failure if it did not run. */
export async function runSanity(options: SanityOptions): Promise<CheckResult[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'sanity-'));
  try {
    const how = await run(options, folder);
    const reports = await readReports(path.join(folder, 'report.json'));
    return reports.length > 0 ? reports.map(result) : [notRun(how)];
  } finally {
    await removeUnmounted(folder);
  }
}

/** A test that failed may have left a mount behind; nothing below one may be deleted. */
async function removeUnmounted(folder: string): Promise<void> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  if (!mounts.includes(` ${folder}/`)) await rm(folder, { recursive: true, force: true });
}

async function run({ program, signal, ...options }: SanityOptions, folder: string): Promise<string> {
  const parameters = path.join(folder, 'parameters.yaml');
  const secrets = path.join(folder, 'secrets.yaml');
  await writeFile(parameters, yaml(own(options.classParameters)));
  await writeFile(secrets, sanityCalls.map((name) => `${name}:\n${yaml(options.secrets, '  ')}`).join(''), {
    mode: 0o600,
  });
  const hasSecrets = Object.keys(options.secrets).length > 0;
  const args = [
    `--csi.endpoint=unix://${options.socketPath}`,
    `--csi.mountdir=${folder}/mount`,
    `--csi.stagingdir=${folder}/staging`,
    `--csi.testvolumesize=${options.sizeBytes}`,
    `--csi.testvolumeparameters=${parameters}`,
    ...(hasSecrets ? [`--csi.secrets=${secrets}`] : []),
    `--ginkgo.json-report=${folder}/report.json`,
    '--ginkgo.no-color',
  ];
  const limit = AbortSignal.any([signal, AbortSignal.timeout(maxMs)]);
  const child = spawn(program === '' ? 'csi-sanity' : program, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    signal: limit,
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors = `${errors}${text}`.slice(-maxMessage)));
  try {
    await once(child, 'close');
    return `exit code ${child.exitCode ?? '?'}: ${errors.trim()}`;
  } catch (error) {
    return (error as Error).message;
  }
}

const sanityCalls = [
  'CreateVolumeSecret',
  'DeleteVolumeSecret',
  'ControllerPublishVolumeSecret',
  'ControllerUnpublishVolumeSecret',
  'ControllerValidateVolumeCapabilitiesSecret',
  'NodeStageVolumeSecret',
  'NodePublishVolumeSecret',
  'CreateSnapshotSecret',
  'DeleteSnapshotSecret',
  'ControllerExpandVolumeSecret',
  'ControllerModifyVolumeSecret',
  'ListSnapshotsSecret',
];

function own(parameters: StringMap): StringMap {
  return Object.fromEntries(Object.entries(parameters).filter(([key]) => !key.startsWith('csi.storage.k8s.io/')));
}

/** JSON texts are YAML, too. */
function yaml(map: StringMap, indent = ''): string {
  return Object.entries(map)
    .map(([key, value]) => `${indent}${JSON.stringify(key)}: ${JSON.stringify(value)}\n`)
    .join('');
}

async function readReports(file: string): Promise<SpecReport[]> {
  try {
    const suites = JSON.parse(await readFile(file, 'utf8')) as { SpecReports: SpecReport[] | null }[];
    return suites
      .flatMap(({ SpecReports: reports }) => reports ?? [])
      .filter(({ LeafNodeType: type }) => type === 'It');
  } catch {
    return [];
  }
}

const states: Record<string, Status> = { passed: 'pass', skipped: 'skip', pending: 'skip' };

function result(report: SpecReport): CheckResult {
  const status = states[report.State] ?? 'fail';
  const message = (report.Failure?.Message ?? report.State).replaceAll(/\s*\n\s*/g, ' ').slice(0, maxMessage);
  const section = 'csi-sanity';
  return {
    id: 'sanity',
    title: [...(report.ContainerHierarchyTexts ?? []), report.LeafNodeText].join(' > '),
    section,
    part: 'sanity',
    status,
    findings: status === 'fail' ? [{ level: 'fail', section, message }] : [],
    notes: status === 'skip' ? [message] : [],
    durationMs: (report.RunTime ?? 0) / 1e6,
  };
}

function notRun(how: string): CheckResult {
  const message = `csi-sanity did not run: ${how}; --sanity=PATH names the program`;
  return {
    id: 'sanity',
    title: 'csi-sanity runs',
    section: 'csi-sanity',
    part: 'sanity',
    status: 'fail',
    findings: [{ level: 'fail', section: 'csi-sanity', message }],
    notes: [],
    durationMs: 0,
  };
}
