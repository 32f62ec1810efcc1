/** What `--timeout` decides besides the deadline of a call. */
import { formatGoDuration, nanosecondsOf } from '../../../base/go-duration.ts';
import { holdMs, lateUntil } from '../../../provision/intents/call-times.ts';
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
    const effects = [
      `a call that hangs, including the first Probe, occupies a worker for ${shown(timeoutMs)}`,
      ...(config.featureGates.releaseLeaderElectionOnExit ? [`a shutdown takes up to ${shown(totalMs)}`] : []),
      ...(values['intent-journal'] === 'off'
        ? []
        : [
            `after a take-over nothing is deleted for ${shown(holdMs(timeoutMs))}`,
            `a volume that is revoked after a call without a clear result may be revoked a second time ${shown(lateUntil(0, timeoutMs))} later, and its record is kept until then`,
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
