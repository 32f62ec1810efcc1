/** `kubectl csi`: what an administrator does with a driver's sidecar, from one file without further packages. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { statusPath } from '../../diagnostics/http-paths.ts';
import { ApiError, TransportError } from '../../kube/client/api-error.ts';
import { KubeClient } from '../../kube/client/kube-client.ts';
import { manageJournal } from '../journal-command.ts';
import { connectCluster } from '../cluster-connection.ts';
import { preflight } from '../preflight/preflight-command.ts';
import { argumentSteps, canonicalFlags } from '../parse-flags.ts';
import { fieldManager } from '../kubernetes.ts';
import { programInImage } from '../program.ts';
import {
  type Subcommand,
  type SubcommandCall,
  SubcommandError,
  subcommandParser,
  readArguments,
} from '../subcommand-call.ts';
import { explainWhy } from '../why.ts';
import { driverWithLease, NoSidecarError, type SidecarPod, sidecarPod, type SidecarQuery } from './sidecar-pod.ts';

export const program = 'kubectl csi';

/** Wrong arguments, or the sidecar was not found. */
const failureCode = 1;
/** Flags of the sidecar that decide what `audit` reads. */
const auditedFlags = [
  'csi-address',
  'timeout',
  'intent-journal',
  'leader-election-namespace',
  'node-deployment',
] as const;

/** The commands by their names, with their lines in the help. */
export const commands: Readonly<Record<string, { run: Subcommand; summary: string }>> = {
  why: { run: explainWhy, summary: 'explain why a claim is not bound, or why a volume stays' },
  audit: { run: auditInPod, summary: "compare the driver's volumes with PersistentVolumes and the intent journal" },
  journal: { run: journal, summary: 'list, adopt or discard the records of the intent journal, or drain it' },
  preflight: { run: preflight, summary: "say what replacing the Go sidecar changes, from a driver's manifests" },
  open: { run: openPage, summary: 'forward a port to the status page of the leader, and print its URL' },
};

interface PluginFlags {
  driver?: string;
  namespace?: string;
  pod?: string;
  container?: string;
  kubeconfig?: string;
  context?: string;
  port?: string;
}

/** Runs `audit` in the container of the sidecar, which has the driver's socket. The exit code is that of `audit`. */
async function auditInPod(call: SubcommandCall): Promise<number> {
  const found = await findSidecar(call, 'audit', {
    description:
      "Compares the driver's volumes with PersistentVolumes and the intent journal, in the Pod of the leader.",
    notes: '\nAll other arguments are those of csi-provisioner audit, such as --output=json and --delete=ID.',
  });
  if (found === undefined) return 0;
  const { sidecar, flags, rest } = found;
  const isTerminal = call.stdin.isTTY === true && call.stdout.isTTY === true;
  const own = flagsOf(sidecar).filter((flag) => auditedFlags.some((name) => flag.startsWith(`--${name}=`)));
  const args = ['exec', ...connectionArgs(flags), ...(isTerminal ? ['-it'] : []), '-n', sidecar.namespace, sidecar.pod];
  const repeated = pluginFlags(flags).map((flag) => `--plugin-flag=${flag}`);
  const inPod = [...programInImage, 'audit', '--plugin', ...repeated, ...own, ...rest];
  return await ended(kubectl([...args, '-c', sidecar.container, '--', ...inPod], { stdio: 'inherit' }));
}

/** Runs here: the journal is in Leases, so no Pod is needed. */
async function journal(call: SubcommandCall): Promise<number> {
  if (call.args.includes('--help') || call.args.includes('-h')) return await manageJournal(call);
  const given = parsed(call, 'journal', { description: '', notes: '' });
  if (given === undefined) return 0;
  const { flags, rest } = given;
  const { driver, namespace } = await withClient(call, flags, async (client) => {
    // without leader election the first Lease of the journal says where it is
    const query = { ...queryOf(flags), suffixes: ['', '-journal-0'] };
    const found = await driverWithLease(client, query, call.signal);
    return { driver: found.driver, namespace: found.lease.metadata.namespace ?? '' };
  });
  const found = [`--driver=${driver}`, `--leader-election-namespace=${namespace}`, ...connectionArgs(flags)];
  return await manageJournal({ ...call, args: [...rest, ...found] });
}

/** Forwards a port to the status page until it is interrupted. */
async function openPage(call: SubcommandCall): Promise<number> {
  const found = await findSidecar(call, 'open', {
    description: 'Forwards a local port to the status page of the leader, and prints its URL.',
    notes: '\nIt runs until it is interrupted.',
    hasPort: true,
  });
  if (found === undefined) return 0;
  const { sidecar, flags } = found;
  const port = pagePort(sidecar);
  const target = `${flags.port ?? ''}:${port}`;
  const args = ['port-forward', ...connectionArgs(flags), '-n', sidecar.namespace, `pod/${sidecar.pod}`, target];
  const child = kubectl(args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ending = ended(child);
  ending.catch(() => undefined); // awaited below
  call.signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
  let isShown = false;
  if (child.stdout !== null) {
    for await (const line of createInterface({ input: child.stdout })) {
      const [, local] = /^Forwarding from (\S+) ->/.exec(line) ?? [];
      if (local === undefined || isShown) continue;
      isShown = true;
      call.stdout.write(`http://${local}${statusPath}\n`);
    }
  }
  const code = await ending;
  return call.signal.aborted ? 0 : code;
}

/** The port on which the sidecar serves its status page. @throws {SubcommandError} when it serves none. */
function pagePort(sidecar: SidecarPod): string {
  const flags = flagsOf(sidecar);
  const [address] = flags.flatMap((flag) => /^--(?:http-endpoint|metrics-address)=(.*)$/.exec(flag)?.[1] ?? []);
  const [, port] = /:(\d+)$/.exec(address ?? '') ?? [];
  if (port !== undefined && flags.includes('--status-page=true')) return port;
  const missing = port === undefined ? '--http-endpoint' : '--status-page';
  throw new SubcommandError(`the sidecar in Pod ${sidecar.pod} serves no status page: it has no ${missing}`, {
    exitCode: failureCode,
  });
}

interface CommandTexts {
  description: string;
  notes: string;
  hasPort?: boolean;
}

/** @returns undefined when help was asked for and printed. @throws {SubcommandError} when the sidecar is not found. */
async function findSidecar(
  call: SubcommandCall,
  name: string,
  texts: CommandTexts,
): Promise<{ sidecar: SidecarPod; flags: PluginFlags; rest: string[] } | undefined> {
  const given = parsed(call, name, texts);
  if (given === undefined) return undefined;
  const { flags } = given;
  const sidecar = await withClient(call, flags, (client) => sidecarPod(client, queryOf(flags), call.signal));
  return { ...given, sidecar };
}

/** The plugin's own flags; all else is left as it is. */
function parsed(
  call: SubcommandCall,
  name: string,
  { description, notes, hasPort = false }: CommandTexts,
): { flags: PluginFlags; rest: string[] } | undefined {
  const parser = subcommandParser({ ...call, program: `${program} ${name}` })
    .description(description)
    .option('--driver <name>', 'CSI driver (default: the only one whose provisioner has a Lease)')
    .option('-n, --namespace <name>', 'namespace of the sidecar (default: all)')
    .option('--pod <namespace/name>', 'Pod of the sidecar (default: that of the leader)')
    .option('--container <name>', 'container of the sidecar (default: the one named after the provisioner)')
    .option('--kubeconfig <file>', 'default: $KUBECONFIG, or ~/.kube/config')
    .option('--context <name>', 'context in the kubeconfig (default: its current one)')
    .addHelpText('after', notes)
    .allowUnknownOption()
    .allowExcessArguments();
  if (hasPort) parser.option('--port <number>', 'local port (default: any that is free)');
  if (!readArguments(parser, call, { usageCode: failureCode })) return undefined;
  return { flags: parser.opts<PluginFlags>(), rest: parser.args };
}

/** What finds the same sidecar again, for the commands that the audit prints. */
function pluginFlags({ driver, namespace, pod, container, ...connection }: PluginFlags): string[] {
  const named = Object.entries({ driver, namespace, pod, container });
  return [
    ...named.flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
    ...connectionArgs(connection),
  ];
}

function queryOf({ driver, namespace, pod, container }: PluginFlags): SidecarQuery {
  return { driver, namespace, pod, container };
}

async function withClient<T>(
  call: SubcommandCall,
  { kubeconfig, context }: PluginFlags,
  use: (client: KubeClient) => Promise<T>,
): Promise<T> {
  const { transport } = connectCluster(call, { kubeconfig, context }, { failureCode });
  await using _transport = transport;
  try {
    return await use(new KubeClient({ transport, fieldManager }));
  } catch (error) {
    const isKnown = [NoSidecarError, ApiError, TransportError].some((each) => error instanceof each);
    if (!isKnown) throw error;
    throw new SubcommandError((error as Error).message, { exitCode: failureCode, cause: error });
  }
}

/** The flags of the sidecar, in canonical form. */
function flagsOf({ args }: SidecarPod): string[] {
  return canonicalFlags([...argumentSteps(args)]);
}

function connectionArgs({ kubeconfig, context }: PluginFlags): string[] {
  return [
    ...(kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`]),
    ...(context === undefined ? [] : [`--context=${context}`]),
  ];
}

function kubectl(args: readonly string[], options: { stdio: 'inherit' | ['ignore', 'pipe', 'inherit'] }): ChildProcess {
  return spawn('kubectl', args, options);
}

/** @throws {SubcommandError} when there is no kubectl. */
async function ended(child: ChildProcess): Promise<number> {
  return await new Promise((resolve, reject) => {
    child.once('error', (error) =>
      reject(
        new SubcommandError(`kubectl cannot be started: ${error.message}`, { exitCode: failureCode, cause: error }),
      ),
    );
    child.once('close', (code, signal) => resolve(code ?? (signal === null ? failureCode : 128)));
  });
}
