/** `csi-provisioner why`: arguments, output and exit code around an explanation. */
import { isDeepStrictEqual } from 'node:util';
import { Option } from 'commander';
import { systemClock } from '../base/clock.ts';
import { silentLogger } from '../base/logger.ts';
import { secretReference } from '../csi/secrets/secret-reference.ts';
import { ClusterReader } from '../explain/cluster-reader.ts';
import { explainClaim } from '../explain/explain-claim.ts';
import { explainVolume } from '../explain/explain-volume.ts';
import { explanationLine, explanationText } from '../explain/explanation-text.ts';
import { exitCodeOf, type Explanation } from '../explain/explanation.ts';
import { KubeClient } from '../kube/client/kube-client.ts';
import type { RequestObservation } from '../kube/client/request.ts';
import type { PersistentVolumeClaim, SecretReference, StorageClass } from '../provision/objects.ts';
import { connectCluster, type ConnectionFlags } from './cluster-connection.ts';
import { fieldManager } from './kubernetes.ts';
import { meantWords, parseFlags } from './parse-flags.ts';
import {
  asCalled,
  readArguments,
  readValues,
  type SubcommandCall,
  subcommandParser,
  usageError,
} from './subcommand-call.ts';

/** The exit code when the state cannot be determined. */
const usageCode = exitCodeOf.unknown;
/** A TLS handshake takes longer than most of the requests: with one for each request that is sent at once, `why` takes a fifth longer. */
const maxConnections = 2;
/** Pause between two checks of `--watch`, in milliseconds. */
const watchPauseMs = 2000;

interface WhyFlags extends ConnectionFlags {
  namespace?: string;
  output: 'text' | 'json';
  watch?: boolean;
}

type WhyObject = { volume: string } | { namespace: string | undefined; claim: string };

const notes = `
All flags of the sidecar are accepted as well, so that its arguments can be copied. Of these --master and
--kubeconfig have an effect.

Exit codes: 0 bound, or nothing to delete; 1 waiting, and nobody has to act; 2 stuck; 3 unknown.
It is read-only, and names the permission that is missing where it may not read. docs/why.md lists all causes.`;

/** Explains what a claim or a volume waits for. Read-only: safe to repeat. */
export async function explainWhy(call: SubcommandCall): Promise<number> {
  const parser = subcommandParser(call)
    .description('Explains why a PersistentVolumeClaim is not bound, or why a PersistentVolume stays.')
    .argument('<object>', 'NAMESPACE/CLAIM, CLAIM, pvc/CLAIM, or pv/NAME for a volume')
    .option('-n, --namespace <name>', 'namespace of the claim (default: that of the context)')
    .addOption(new Option('-o, --output <form>', 'text or json').choices(['text', 'json']).default('text'))
    .option('-w, --watch', 'repeat until it is bound or gone')
    .option('--kubeconfig <file>', 'default: $KUBECONFIG, ~/.kube/config, or the service account of the Pod')
    .option('--context <name>', 'context in the kubeconfig (default: its current one)')
    .addHelpText('after', notes)
    .allowUnknownOption()
    .allowExcessArguments();
  if (!readArguments(parser, call, { usageCode })) return 0;
  const { text, master } = sidecarArguments(call, parser.args);
  const flags = { ...parser.opts<WhyFlags>(), master };
  const object = readObject(call, text, flags.namespace || undefined);

  let serverAheadMs = 0;
  const onRequest = ({ date = '' }: RequestObservation): void => {
    const serverMs = Date.parse(date);
    if (!Number.isNaN(serverMs)) serverAheadMs = serverMs - systemClock.wallMs();
  };
  const { transport, namespace } = connectCluster(call, flags, {
    failureCode: usageCode,
    maxConnections,
    onRequest,
  });
  await using _transport = transport;
  const client = new KubeClient({ transport, fieldManager });
  const reader = new ClusterReader({ client, signal: call.signal });
  const options = { reader, now: () => systemClock.wallMs() + serverAheadMs, secretOf: claimSecret };
  const explain = (): Promise<Explanation> =>
    'volume' in object
      ? explainVolume(object.volume, options)
      : explainClaim({ namespace: object.namespace ?? namespace, name: object.claim }, options);
  return flags.watch === true ? await watch(explain, flags, call) : await once(explain, flags, call);
}

/** The object, and those flags of the sidecar that have an effect. @throws {SubcommandError} for anything else. */
function sidecarArguments(call: SubcommandCall, args: readonly string[]): { text: string; master: string | undefined } {
  const [text, unexpected] = meantWords(args);
  return readValues(call, { usageCode }, () => {
    const parsed = parseFlags(call.program, args);
    if (parsed.kind === 'help') throw new RangeError('help is --help');
    if (text === undefined) throw new RangeError('no object is given: add NAMESPACE/CLAIM or pv/NAME');
    if (unexpected !== undefined) throw new RangeError(`unexpected argument ${JSON.stringify(unexpected)}`);
    return { text, master: parsed.values.master || undefined };
  });
}

/** @throws {SubcommandError} for what names neither a claim nor a volume. */
function readObject(call: SubcommandCall, text: string, namespace: string | undefined): WhyObject {
  const [first = '', second, ...rest] = text.split('/');
  if (first === '' || second === '' || rest.length > 0) {
    throw usageError(call, `${JSON.stringify(text)} is neither NAMESPACE/CLAIM nor pv/NAME`, { usageCode });
  }
  if (second === undefined) return { namespace, claim: first };
  if (first === 'pv') return { volume: second };
  if (first === 'pvc') return { namespace, claim: second };
  if (namespace !== undefined) {
    throw usageError(call, `${JSON.stringify(text)} names a namespace already: omit --namespace`, {
      usageCode,
    });
  }
  return { namespace: first, claim: second };
}

async function once(explain: () => Promise<Explanation>, flags: WhyFlags, call: SubcommandCall): Promise<number> {
  try {
    const explanation = await explain();
    write(explanation, flags, call);
    return exitCodeOf[explanation.verdict];
  } catch (error) {
    if (error === call.signal.reason) return usageCode;
    throw error;
  }
}

/** Writes each change: on a terminal in place, elsewhere a line each. */
async function watch(explain: () => Promise<Explanation>, flags: WhyFlags, call: SubcommandCall): Promise<number> {
  const { signal, stdout } = call;
  let code = usageCode;
  let shown = '';
  let isToGo = false;
  try {
    for (;;) {
      const explanation = await explain();
      code = exitCodeOf[explanation.verdict];
      const news = stdout.isTTY === true ? JSON.stringify(explanation) : newsOf(explanation);
      if (news !== shown) writeChange(explanation, flags, call);
      shown = news;
      if (explanation.verdict === 'bound') return code;
      if (explanation.cause === 'not-found') return isToGo ? exitCodeOf.bound : code;
      isToGo = explanation.object.startsWith('pv/') || explanation.cause === 'deleting';
      await systemClock.sleep(watchPauseMs, { signal });
    }
  } catch (error) {
    if (error === signal.reason) return code;
    throw error;
  }
}

/** Left out are the ages and counts in messages: a change of them alone is not printed. */
function newsOf({ verdict, cause, steps }: Explanation): string {
  return JSON.stringify([verdict, cause, steps.map(({ step, state }) => [step, state])]);
}

function writeChange(explanation: Explanation, flags: WhyFlags, call: SubcommandCall): void {
  const { stdout } = call;
  if (flags.output === 'json') stdout.write(`${JSON.stringify(explanation)}\n`);
  else if (stdout.isTTY !== true) {
    stdout.write(`${new Date().toISOString().slice(11, 19)} ${explanationLine(explanation)}\n`);
  } else {
    stdout.write('\u001b[H\u001b[2J'); // the top of an empty screen
    write(explanation, flags, call);
  }
}

function write(explanation: Explanation, { output }: WhyFlags, call: SubcommandCall): void {
  const { stdout, environment } = call;
  if (output === 'json') {
    stdout.write(`${JSON.stringify(explanation, undefined, 2)}\n`);
    return;
  }
  const colour = stdout.isTTY === true && (environment['NO_COLOR'] ?? '') === '';
  const cure = asCalled(explanation.cure, 'why', call);
  stdout.write(explanationText({ ...explanation, cure }, { colour, columns: stdout.columns }));
}

/**
 * The Secret that the driver gets with `CreateVolume`: as the sidecar finds it, as far as the cluster shows it. What flags of the sidecar decide is not in the cluster: a name that a template makes of the
 * volume's name counts as none.
 *
 * @throws {Error} for parameters that name no Secret, which the sidecar records as an event.
 */
export function claimSecret(storageClass: StorageClass, claim: PersistentVolumeClaim): SecretReference | undefined {
  const { namespace = '', name, annotations } = claim.metadata;
  const [one, other] = ['one', 'other'].map((volumeName) => {
    const context = { volumeName, claim: { namespace, name, annotations } };
    return secretReference('provisioner', storageClass.parameters ?? {}, context, silentLogger);
  });
  return isDeepStrictEqual(one, other) ? one : undefined;
}
