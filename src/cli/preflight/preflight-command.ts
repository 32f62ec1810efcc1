/** `csi-provisioner preflight`: what changing the image would do to a driver, from the driver's own manifests. */
import { Option } from 'commander';
import {
  asCalled,
  readArguments,
  type SubcommandCall,
  SubcommandError,
  subcommandParser,
  usageError,
} from '../subcommand-call.ts';
import { isLabelName } from '../../kube/kube-object.ts';
import { ManifestError, notName } from './manifest.ts';
import { preflightReport, type PreflightReport, preflightText } from './preflight-report.ts';
import { readManifests } from './read-manifests.ts';

/** What cannot be read, or is no manifest of a driver. */
const usageCode = 2;

interface PreflightFlags {
  output: 'text' | 'json';
  namespace?: string;
  container?: string;
  recursive?: boolean;
  strict?: boolean;
}

const notes = `
FILE is a file or folder with manifests in YAML or JSON, or - for standard input: all that kubectl apply -f would
get, with the roles and bindings. The output of helm template and kubectl kustomize goes through a pipe.

Exit codes: 0 nothing has to be done before the image is changed; 1 something has to be
done first, or with --strict there are warnings; 2 something cannot be read, or no container is the
Go sidecar. Nothing is sent to a cluster.`;

/** Reads manifests and reports. Read-only: safe to repeat. */
export async function preflight(call: SubcommandCall): Promise<number> {
  const parser = subcommandParser(call)
    .description(
      "Reads a driver's manifests, and says what would change if this sidecar replaced the Go sidecar there.",
    )
    .argument('<file...>', 'files, folders, or - for standard input')
    .addOption(new Option('-o, --output <form>', 'text or json').choices(['text', 'json']).default('text'))
    .option('-n, --namespace <name>', 'namespace of objects that name none')
    .option('--container <name>', 'the container that is the sidecar (default: it is recognised)')
    .option('-R, --recursive', 'also read the folders in a folder')
    .option('--strict', 'exit code 1 for warnings, too')
    .addHelpText('after', notes);
  if (!readArguments(parser, call, { usageCode })) return 0;
  const flags = parser.opts<PreflightFlags>();
  if (flags.namespace === '' || flags.container === '') {
    throw usageError(call, '--namespace and --container must not be empty', { usageCode });
  }
  if (flags.namespace !== undefined && !isLabelName(flags.namespace)) {
    throw usageError(call, `--namespace ${notName(flags.namespace)}`, { usageCode });
  }
  const report = await reportOf(call, parser.args, flags);
  write(report, flags, call);
  return exitCodeOf(report, flags);
}

async function reportOf(
  call: SubcommandCall,
  files: readonly string[],
  { namespace, container, recursive = false }: PreflightFlags,
): Promise<PreflightReport> {
  try {
    return preflightReport(await readManifests(files, { recursive, stdin: call.stdin }), { namespace, container });
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error;
    throw new SubcommandError(asCalled(error.message, 'preflight', call), { exitCode: usageCode, cause: error });
  }
}

function write(report: PreflightReport, { output }: PreflightFlags, call: SubcommandCall): void {
  const { stdout, environment } = call;
  if (output === 'json') {
    stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
    return;
  }
  const colour = stdout.isTTY === true && (environment['NO_COLOR'] ?? '') === '';
  stdout.write(preflightText(reportAsCalled(report, call), { colour, columns: stdout.columns }));
}

function reportAsCalled({ verdict, sidecars, notes: left }: PreflightReport, call: SubcommandCall): PreflightReport {
  const named = (text: string): string => asCalled(text, 'preflight', call);
  return {
    verdict,
    sidecars: sidecars.map(({ findings, ...sidecar }) => {
      return { ...sidecar, findings: findings.map((each) => ({ ...each, cure: named(each.cure) })) };
    }),
    notes: left.map(named),
  };
}

function exitCodeOf({ verdict }: PreflightReport, { strict = false }: PreflightFlags): number {
  return verdict === 'must' || (strict && verdict === 'warning') ? 1 : 0;
}
