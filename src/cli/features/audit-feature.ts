/** The audit of `--audit-interval`, and what it shares with `csi-provisioner audit`: the volumes of the driver, the commands to copy. */
import os from 'node:os';
import { addDriverFacts, type Audit } from '../../audit/audit.ts';
import { look, type LookOptions } from '../../audit/look.ts';
import { NotDeletableError } from '../../audit/audit-errors.ts';
import { deletableRecord } from '../../audit/delete-leaked.ts';
import type { Finding } from '../../audit/finding.ts';
import { RecurringAudit } from '../../audit/recurring-audit.ts';
import { centralVolumeHome, nodeVolumeHome } from '../../audit/cluster-volumes.ts';
import { formatGoDuration, millisecondsOf, nanosecondsOf, parseGoDuration } from '../../base/go-duration.ts';
import { silentProgress } from '../../base/progress.ts';
import { shellCommand } from '../../base/shell-word.ts';
import type { Driver } from '../../csi/driver.ts';
import type { Feature } from '../../run/feature.ts';
import { ownNamespace } from '../../run/lock-name.ts';
import type { Config } from '../config.ts';
import { flagTable } from '../flags.ts';
import type { FeatureOptions } from '../run-phase-options.ts';
import { journalObjects } from './journal-features.ts';

/** The audit of `--audit-interval`: of the leader, or in node deployment of each node. Undefined where it is off. */
export function auditFeature(options: FeatureOptions): Feature | undefined {
  const { config, driver, client, transport, informers, metrics, random = Math.random, clock, logger } = options;
  if (config.auditIntervalMs === null || metrics.audit === undefined) return undefined;
  const plugin = pluginFlags(options);
  const audit = new RecurringAudit({
    look: async (signal) => {
      if (!driver.capabilities.listVolumes) return undefined;
      const found = await look({
        driver,
        transport,
        client,
        journal: journalObjects(options),
        homeOf: homeIn(config, driver),
        cache: informers.volumes,
        progress: silentProgress,
        clock,
        logger,
        signal,
      });
      return found.listed === undefined ? undefined : found;
    },
    addFacts: (findings, signal) => addDriverFacts(findings, { driver, progress: silentProgress, signal }),
    commandFor: (finding, found) => commandFor(finding, found, { program: 'csi-provisioner', config, plugin }),
    intervalMs: config.auditIntervalMs,
    metrics: metrics.audit,
    random,
    clock,
    logger,
  });
  options.status?.audits(audit.state);
  return { run: ({ stop, abort }) => audit.run(AbortSignal.any([stop, abort])) };
}

/** Whoever reads the status page has no shell in this Pod: the plugin finds it by the Lease, or by its name. */
function pluginFlags({ config, driver }: FeatureOptions): string[] {
  if (config.leaderElection !== null && config.nodeDeployment === null) return [`--driver=${driver.name}`];
  return [`--pod=${config.intentJournal?.namespace || ownNamespace()}/${os.hostname()}`];
}

/** Which volumes the driver has: in node deployment those of its node. */
export function homeIn({ nodeDeployment }: Config, { name: driverName, nodeInfo }: Driver): LookOptions['homeOf'] {
  const nodeName = nodeDeployment?.nodeName;
  if (nodeName === undefined || nodeInfo === undefined) return (volume) => centralVolumeHome(volume, driverName);
  return (volume) => nodeVolumeHome(volume, { driverName, nodeName, nodeInfo });
}

interface CommandContext {
  /** Such as `csi-provisioner`. */
  program: string;
  config: Config;
  /** In the kubeconfig; undefined: its current one. */
  context?: string | undefined;
  /** The reader has the kubectl plugin, not the driver's socket: its flags, such as `--driver`. */
  plugin?: readonly string[] | undefined;
}

const defaultTimeoutMs = millisecondsOf(parseGoDuration(flagTable.timeout.default));

/**
 * What to run next, with the flags that find the same driver, cluster and journal. Nothing deletes a volume that may be kept on purpose, or a candidate:
 * docs/audit.md says what to find out before.
 *
 * @returns undefined where nothing is to be done, and for names that cannot be copied.
 */
export function commandFor(finding: Finding, found: Audit, context: CommandContext): string | undefined {
  const { persistentVolumes = [], volumeId = '', claim = '', record = '' } = finding;
  const journal = (...words: string[]): string[] => own(context, 'journal', ...words);
  switch (finding.state) {
    case 'leaked':
      return shellCommand(
        isDeletable(volumeId, found) ? own(context, 'audit', `--delete=${volumeId}`) : journal('list'),
      );
    case 'stuck':
      return shellCommand(isWithoutStorage(finding, found) ? journal('discard', `--uid=${record}`) : journal('list'));
    case 'candidate':
      return shellCommand(record === '' ? describe(context, persistentVolumes) : journal('list'));
    case 'lost':
    case 'unverified':
    case 'shared':
      return shellCommand(describe(context, persistentVolumes));
    case 'unexplained': {
      // of another driver name, or by a field that is not read here
      const search = shellCommand(['grep', '-n', '-F', '-e', volumeId]);
      const list = shellCommand([...kubectl(context), 'get', 'pv', '-o', 'yaml']);
      return search === undefined || list === undefined ? undefined : `${list} | ${search}`;
    }
    case 'being-made':
      return shellCommand(
        context.plugin === undefined
          ? [context.program, 'why', claim, ...clusterFlags(context)]
          : [...pluginWords, 'why', claim, ...connectionOf(context.plugin)],
      );
    case 'being-deleted':
    case 'foreign':
      return undefined;
  }
}

function isDeletable(volumeId: string, found: Audit): boolean {
  try {
    deletableRecord(volumeId, found, { mayBeUnproved: false });
    return true;
  } catch (error) {
    if (error instanceof NotDeletableError) return false;
    throw error;
  }
}

/**
 * Whether a stuck record certainly has no storage left, so that nothing is lost with it. The id of an unknown volume need not
 * mention its claim at all: then every volume that nothing explains may be the record's.
 */
function isWithoutStorage(
  { reason, volumeId, record }: Finding,
  { isListComplete, findings, records, incomplete }: Audit,
): boolean {
  if (reason === 'unproved' || !isListComplete || incomplete.length > 0) return false;
  const stored = records.find((each) => each.record.claim.uid === record);
  if (stored === undefined || stored.candidateIds.length > 0) return false;
  return volumeId !== undefined || !findings.some(({ state }) => state === 'unexplained' || state === 'candidate');
}

/** How the kubectl plugin is called, which finds the Pod, the driver's socket and the journal by itself. */
const pluginWords = ['kubectl', 'csi'];

function connectionOf(plugin: readonly string[]): string[] {
  return plugin.filter((flag) => /^--(kubeconfig|context)=/.test(flag));
}

function own(context: CommandContext, ...words: string[]): string[] {
  if (context.plugin !== undefined) return [...pluginWords, ...words, ...context.plugin];
  const { config } = context;
  const { csiTimeoutMs, intentJournal, nodeDeployment } = config;
  return [
    context.program,
    ...words,
    `--csi-address=${config.csiAddress}`,
    ...(csiTimeoutMs === defaultTimeoutMs ? [] : [`--timeout=${formatGoDuration(nanosecondsOf(csiTimeoutMs))}`]),
    ...clusterFlags(context),
    ...(intentJournal === null ? ['--intent-journal=off'] : []),
    ...(intentJournal === null || intentJournal.namespace === ''
      ? []
      : [`--leader-election-namespace=${intentJournal.namespace}`]),
    ...(nodeDeployment === null ? [] : ['--node-deployment']),
    ...contextFlag(context),
  ];
}

/** @param serverFlag - what the program calls the URL of the API server. */
function clusterFlags({ config: { kubernetes } }: CommandContext, serverFlag = '--master'): string[] {
  const { kubeconfigFiles, kubeconfigFromEnvironment, masterUrl } = kubernetes;
  return [
    ...(kubeconfigFromEnvironment ? [] : kubeconfigFiles.map((file) => `--kubeconfig=${file}`)),
    ...(masterUrl === '' ? [] : [`${serverFlag}=${masterUrl}`]),
  ];
}

function contextFlag({ context }: CommandContext): string[] {
  return context === undefined ? [] : [`--context=${context}`];
}

function describe(context: CommandContext, names: readonly string[]): string[] {
  return [...kubectl(context), 'describe', 'pv', ...names];
}

function kubectl(context: CommandContext): string[] {
  if (context.plugin !== undefined) return ['kubectl', ...connectionOf(context.plugin)];
  return ['kubectl', ...clusterFlags(context, '--server'), ...contextFlag(context)];
}
