/** Checks of limits that were made for a Go program, and of times that are too short or too long. */
import { formatGoDuration, nanosecondsOf } from '../../base/go-duration.ts';
import { formatQuantity, parseQuantity, quantityBytes, QuantityError } from '../../base/quantity.ts';
import { callsEndMs, callsFound, heldUntilMs } from '../../provision/intents/earlier-requests.ts';
import { shutdownTimes } from '../../run/shutdown.ts';
import type { Container } from './find-sidecars.ts';
import type { Check } from './preflight-finding.ts';

/** Of docs/scale.md: resident memory without any volume, and for each pair of a claim and a volume at the peak, in bytes. */
const idleBytes = 85_000_000;
const pairBytes = 1200;
/** What is left free. */
const margin = 1.2;
/** A cluster of this many volumes is nothing unusual. */
const usualPairs = 20_000;
const recommendedBytes = 512 * 1024 * 1024;

/** Of docs/scale.md: CPU time to fill the caches of 50,000 volumes with their claims, in seconds. */
const cpuSeconds = 4.2;
/** Below this many CPUs a start takes more than 40 s. */
const leastCpus = 0.1;

/** A longer `--timeout` is felt where a driver hangs, in milliseconds. */
const longTimeoutMs = 5 * 60_000;
/** `terminationGracePeriodSeconds` of Kubernetes. */
const defaultGraceSeconds = 30;

export const limitChecks = {
  /** The memory limit is too small for the claims and volumes of a cluster. */
  memory({ container }) {
    const limit = limitOf(container, 'memory', (text) => ({
      text: formatQuantity(parseQuantity(text)),
      bytes: Number(quantityBytes(text)),
    }));
    if (limit === undefined || limit.bytes >= recommendedBytes) return undefined;
    const pairs = Math.max(0, Math.floor((limit.bytes / margin - idleBytes) / pairBytes / 1000) * 1000);
    const cure = 'Set 512Mi to begin with, and see process_resident_memory_bytes: docs/scale.md.';
    if (pairs === 0) {
      return {
        level: 'must',
        message: `Its memory limit of ${limit.text} was made for a Go program: the process needs 85 MB before the first volume, and may be killed when it starts or fills its caches.`,
        cure,
      };
    }
    const message = `Its memory limit of ${limit.text} is enough for about ${pairs.toLocaleString('en-US')} volumes in the cluster, of any driver: the process needs 85 MB, and 1.2 kB for each volume with its claim.`;
    return pairs < usualPairs ? { level: 'warning', message, cure } : { level: 'note', message };
  },

  /** The CPU limit is so small that the process is slow to start. */
  cpu({ container }) {
    const limit = limitOf(container, 'cpu', (text) => ({ text, cpus: Number(parseQuantity(text).nanos) / 1e9 }));
    if (limit === undefined || limit.cpus >= leastCpus) return undefined;
    const seconds = limit.cpus > 0 ? Math.round(cpuSeconds / limit.cpus).toLocaleString('en-US') : 'very many';
    return {
      level: 'warning',
      message: `Its CPU limit of ${limit.text} was made for a Go program: with 50,000 volumes in the cluster a start takes about ${seconds} s, and a throttled leader may lose its Lease.`,
      cure: 'Remove the limit, or set at least 200m. The scheduler needs only the request.',
    };
  },

  /** What `--timeout` decides besides the deadline of a call. */
  timeout({ arguments: { config, given, values } }) {
    if (config === undefined || !given.has('timeout') || config.csiTimeoutMs <= 0) return undefined;
    const timeoutMs = config.csiTimeoutMs;
    const { totalMs } = shutdownTimes(timeoutMs);
    const late = callsFound(0, { nowMs: 0, maxCallMs: timeoutMs });
    const effects = [
      `a call that hangs, including the first Probe, occupies a worker for ${shown(timeoutMs)}`,
      ...(config.featureGates.releaseLeaderElectionOnExit ? [`a shutdown takes up to ${shown(totalMs)}`] : []),
      ...(values['intent-journal'] === 'off'
        ? []
        : [
            `a released volume whose record is found after a crash is deleted ${shown(heldUntilMs(late))} later`,
            `a volume that no claim wants is deleted ${shown(callsEndMs(late))} after the last call without a clear result`,
          ]),
    ];
    const message = `--timeout=${formatGoDuration(values.timeout)}: ${effects.join('; ')}.`;
    if (timeoutMs < longTimeoutMs) return { level: 'note', message };
    return {
      level: 'note',
      message: `${message} If a driver hangs, ${values['worker-threads']} such calls occupy all workers.`,
      cure: 'Set it to a little more than the driver needs for its slowest volume.',
    };
  },

  /** The Pod is killed before a shutdown can have ended. */
  'grace-period'({ workload: { pod }, arguments: { config } }) {
    if (config?.featureGates.releaseLeaderElectionOnExit !== true) return undefined;
    const given = pod.number('terminationGracePeriodSeconds');
    const seconds = given ?? defaultGraceSeconds;
    const { gracePeriodSeconds } = shutdownTimes(config.csiTimeoutMs);
    if (seconds >= gracePeriodSeconds) return undefined;
    return {
      level: 'warning',
      message: `terminationGracePeriodSeconds is ${seconds}${given === undefined ? ', the default' : ''}, and with this --timeout a shutdown takes up to ${gracePeriodSeconds} s while a call is in progress. The kubelet would kill the process before that. Then, as always with the Go sidecar, the Lease has to expire, and the next leader repeats the call.`,
      cure: `Set terminationGracePeriodSeconds: ${gracePeriodSeconds}. Draining a node on which the driver hangs then takes that long, so leave it if ${seconds} s are enough for a usual call.`,
    };
  },
} satisfies Record<string, Check>;

/** A limit of a container; undefined where it has none. @throws {ManifestError} for one that is no quantity. */
function limitOf<T>(
  { fields }: Container,
  resource: 'cpu' | 'memory',
  parse: (text: string | number) => T,
): T | undefined {
  const text = fields.partAt('resources', 'limits')?.textOrNumber(resource);
  try {
    return text === undefined ? undefined : parse(text);
  } catch (error) {
    if (!(error instanceof QuantityError)) throw error;
    throw fields.problem(`resources.limits.${resource}`, `is no quantity: ${error.message}`);
  }
}

function shown(ms: number): string {
  return formatGoDuration(nanosecondsOf(ms));
}
