/** What `--timeout` decides besides the deadline of a call. */
import { formatGoDuration, nanosecondsOf } from '../../../base/go-duration.ts';
import { callsEndMs, callsFound, heldUntilMs } from '../../../provision/intents/earlier-requests.ts';
import { shutdownTimes } from '../../../run/shutdown.ts';
import { defineFinding } from './preflight-finding.ts';

/** A longer one is felt where a driver hangs, in milliseconds. */
const longMs = 5 * 60_000;

export const longTimeout = defineFinding({
  name: 'timeout',
  check({ arguments: { config, given, values } }) {
    if (config === undefined || !given.has('timeout') || config.csiTimeoutMs <= 0) return [];
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
    if (timeoutMs < longMs) return [{ level: 'note', message }];
    return [
      {
        level: 'note',
        message: `${message} If a driver hangs, ${values['worker-threads']} such calls occupy all workers.`,
        cure: 'Set it to a little more than the driver needs for its slowest volume.',
      },
    ];
  },
});

function shown(ms: number): string {
  return formatGoDuration(nanosecondsOf(ms));
}
