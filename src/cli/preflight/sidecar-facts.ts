/** What is known of one container that is the Go sidecar: what the findings are made from. */
import { CsiAddressError, csiTarget } from '../../csi/csi-address.ts';
import { isLabelName, isSubdomainName } from '../../kube/kube-object.ts';
import { ExitError } from '../../run/exit.ts';
import { argumentSteps, parseFlags } from '../parse-flags.ts';
import { checkConfig } from '../config-checks.ts';
import { buildConfig, type Config, type Environment } from '../config.ts';
import {
  type Container,
  expandVariables,
  goRelease,
  type GoRelease,
  type SidecarContainer,
  type Workload,
} from './find-sidecars.ts';
import { applyFeatureGates, type Notice } from '../feature-gates.ts';
import type { FlagName, FlagValues } from '../flags.ts';
import { Access, type Account, isSameNamespace, type Namespace } from './access.ts';
import { type Manifest, notName } from './manifest.ts';

export interface SidecarFacts {
  workload: Workload;
  container: Container;
  arguments: ReadArguments;
  account: Account;
  access: Access;
  /** Where the Lease of the leader election and the journal are. */
  lockNamespace: Namespace;
  /** Undefined where its image does not say it. */
  release: GoRelease | undefined;
  /** All that was given. */
  manifests: readonly Manifest[];
  /** All of them, with this one. */
  workloads: readonly Workload[];
  /** All containers that are the Go sidecar, with this one. */
  sidecars: readonly SidecarContainer[];
}

/** @throws {ManifestError} */
export function sidecarFacts(
  { workload, container }: SidecarContainer,
  all: Pick<SidecarFacts, 'manifests' | 'workloads' | 'sidecars'>,
): SidecarFacts {
  checkNames(workload);
  const account = accountOf(workload);
  const read = readArguments(container, workload.namespace);
  return {
    workload,
    container,
    arguments: read,
    account,
    access: new Access(all.manifests, account),
    lockNamespace: lockNamespaceOf(read, workload, container),
    release: goRelease(container.image),
    ...all,
  };
}

/** Those that are printed to be applied. @throws {ManifestError} */
function checkNames({ manifest, pod }: Workload): void {
  manifest.fields.part('metadata')?.checkName('namespace', isLabelName);
  for (const field of ['serviceAccountName', 'serviceAccount']) pod.checkName(field, isSubdomainName);
}

function accountOf({ pod, namespace }: Workload): Account {
  return { namespace, name: pod.text('serviceAccountName') || pod.text('serviceAccount') || 'default' };
}

/** Other workloads whose Pods have the same ServiceAccount. */
export function accountSharers({ account, workload, workloads }: SidecarFacts): Workload[] {
  return workloads.filter((other) => {
    if (other === workload) return false;
    const { name, namespace } = accountOf(other);
    return name === account.name && isSameNamespace(namespace, account.namespace);
  });
}

/** The containers that belong to the driver's controller: those of the Pod, and of others with the same ServiceAccount. */
export function controllerContainers(facts: SidecarFacts): Container[] {
  return [facts.workload, ...accountSharers(facts)].flatMap(({ containers }) => containers);
}

/** Where the Lease of a container is. */
export function lockNamespaceOf(
  { values, environment }: ReadArguments,
  { namespace }: Workload,
  { fields }: Container,
): Namespace {
  const given = values['leader-election-namespace'];
  const name = given || environment.POD_NAMESPACE || namespace;
  if (name === undefined || name.includes(unknownName) || name.includes('$(')) return { name: undefined };
  if (isLabelName(name)) return { name };
  throw given === ''
    ? fields.problem('env', `with the name POD_NAMESPACE ${notName(name)}`)
    : fields.problem('args', `with --leader-election-namespace ${notName(name)}`);
}

/** A name that stands for one that the cluster chooses. */
const unknownName = 'chosen-by-the-cluster';

interface ReadArguments {
  /** Why the process would end at once, the first reason first; empty where it starts. */
  problems: string[];
  /** Undefined where it cannot be known, since an argument cannot be read. */
  config: Config | undefined;
  /** Of the flags that can be read; the others have their defaults. */
  values: FlagValues;
  given: ReadonlySet<FlagName>;
  /** What the sidecar would log before it starts. */
  notices: readonly Notice[];
  /** Words that are no flags. */
  ignored: readonly string[];
  environment: Environment;
}

const program = 'csi-provisioner';

/** @param namespace - of the Pod, where it is known. */
export function readArguments(container: Container, namespace: string | undefined): ReadArguments {
  const environment = environmentOf(container, namespace);
  const { readable, unreadable } = withoutUnreadable(argumentsOf(container, new Map(Object.entries(environment))));
  const parsed = parseFlags(program, readable);
  if (parsed.kind === 'help') throw new TypeError('a request for help is unreadable');
  const { values, given, ignored } = parsed;
  const { known, unknown } = withoutUnknownGates(values['feature-gates']);
  const flags = { values: { ...values, 'feature-gates': known }, given };
  const start = startOf(flags, environment);
  return {
    problems: [...new Set([...unreadable, ...unknown, ...('problem' in start ? [start.problem] : [])])],
    config: 'config' in start ? start.config : configAnyhow(flags, environment),
    values: flags.values,
    given,
    notices: 'config' in start ? start.notices : [],
    ignored,
    environment,
  };
}

/** Behind an entry point of its own, a command has the arguments of the program in it. */
function argumentsOf({ command = [], args }: Container, variables: ReadonlyMap<string, string>): string[] {
  const isShell = command.some((word) => /(?:^|\/)(?:ba|da|z)?sh$/.test(word));
  const own = isShell ? [] : command.slice(1).filter((word) => word.startsWith('-'));
  return [...own, ...(isShell ? [] : args)].map((arg) => expandVariables(arg, variables));
}

function environmentOf({ env }: Container, namespace: string | undefined): Record<string, string> {
  const fields: Readonly<Record<string, string | undefined>> = { 'metadata.namespace': namespace };
  const values = new Map<string, string>();
  for (const { name, value, fieldPath } of env) {
    values.set(name, value === undefined ? (fields[fieldPath ?? ''] ?? unknownName) : expandVariables(value, values));
  }
  return Object.fromEntries(values);
}

/** The arguments without those at which the sidecar would end, and what it would say of each. */
function withoutUnreadable(args: readonly string[]): { readable: string[]; unreadable: string[] } {
  const readable: string[] = [];
  const unreadable: string[] = [];
  let rest = [...args];
  while (rest.length > 0) {
    const { length, problem } = firstStep(rest);
    if (problem === undefined) readable.push(...rest.slice(0, length));
    else unreadable.push(problem);
    rest = rest.slice(length);
    if (problem?.startsWith('unknown flag') === true) rest = rest.slice(valueLength(rest));
  }
  return { readable, unreadable };
}

/** How many arguments the first flag or word takes up, and why it cannot be read. */
function firstStep(args: readonly string[]): { length: number; problem?: string } {
  for (const length of [1, 2]) {
    const step = [...argumentSteps(args.slice(0, length))].at(-1);
    if (step?.kind === 'help') return { length, problem: `it is a request for help: ${args[0] ?? ''}` };
    if (step?.kind !== 'error') return withValueChecked(args.slice(0, length));
    const lacksValue = step.error.startsWith('flag needs an argument');
    if (!lacksValue || length === 2 || args.length === 1)
      return { length: lacksValue ? length : 1, problem: step.error };
  }
  throw new TypeError('two arguments are one step at most');
}

function withValueChecked(args: readonly string[]): { length: number; problem?: string } {
  try {
    parseFlags(program, args);
    return { length: args.length };
  } catch (error) {
    if (!(error instanceof ExitError)) throw error;
    return { length: args.length, problem: error.line };
  }
}

/** What follows an unknown flag and is no flag was meant as its value. */
function valueLength([next]: readonly string[]): number {
  return next === undefined || next.startsWith('-') ? 0 : 1;
}

interface GivenFlags {
  values: FlagValues;
  given: ReadonlySet<FlagName>;
}

function withoutUnknownGates(asked: ReadonlyMap<string, boolean>): {
  known: Map<string, boolean>;
  unknown: string[];
} {
  const known = new Map<string, boolean>();
  const unknown: string[] = [];
  for (const [name, value] of asked) {
    const problem = problemOf(() => applyFeatureGates(new Map([[name, value]])));
    if (problem === undefined) known.set(name, value);
    else unknown.push(problem);
  }
  return { known, unknown };
}

function problemOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof ExitError || error instanceof CsiAddressError) return lineOf(error);
    throw error;
  }
}

/** As the process begins, up to where it needs driver and cluster. */
function startOf(
  flags: GivenFlags,
  environment: Environment,
): { config: Config; notices: readonly Notice[] } | { problem: string } {
  let started: { config: Config; notices: readonly Notice[] } | undefined;
  const problem = problemOf(() => {
    const config = buildConfig({ argv0: program, ...flags, environment });
    started = { config, notices: checkConfig(config) };
    csiTarget(config.csiAddress);
  });
  if (flags.values.version) return { problem: 'it would print its version and end: --version' };
  return started === undefined || problem !== undefined ? { problem: problem ?? '' } : started;
}

/** As if the environment were complete, so that the rest can be checked; undefined where the flags contradict each other. */
function configAnyhow(flags: GivenFlags, environment: Environment): Config | undefined {
  let config: Config | undefined;
  const complete = { NODE_NAME: unknownName, NAMESPACE: unknownName, POD_NAME: unknownName, ...environment };
  problemOf(() => (config = buildConfig({ argv0: program, ...flags, environment: complete })));
  return config;
}

function lineOf(error: ExitError | CsiAddressError): string {
  if (!(error instanceof ExitError)) return error.message;
  const { err } = error.fields as { err?: unknown };
  return typeof err === 'string' ? `${error.line}: ${err}` : error.line;
}
