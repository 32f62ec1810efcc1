/** The Pod is killed before a shutdown can have ended. */
import { shutdownTimes } from '../../../run/shutdown.ts';
import { defineFinding } from './preflight-finding.ts';

/** Of Kubernetes, in seconds. */
const defaultSeconds = 30;

export const shortGracePeriod = defineFinding({
  name: 'grace-period',
  check({ workload: { pod }, arguments: { config } }) {
    if (config?.featureGates.releaseLeaderElectionOnExit !== true) return [];
    const given = pod.number('terminationGracePeriodSeconds');
    const seconds = given ?? defaultSeconds;
    const { gracePeriodSeconds } = shutdownTimes(config.csiTimeoutMs);
    if (seconds >= gracePeriodSeconds) return [];
    return [
      {
        level: 'warning',
        message: `terminationGracePeriodSeconds is ${seconds}${given === undefined ? ', the default' : ''}, and with this --timeout a shutdown takes up to ${gracePeriodSeconds} s while a call is in progress. The kubelet would kill the process before that. Then, as always with the Go sidecar, the Lease has to expire, and the next leader repeats the call.`,
        cure: `Set terminationGracePeriodSeconds: ${gracePeriodSeconds}. Draining a node on which the driver hangs then takes that long, so leave it if ${seconds} s are enough for a usual call.`,
      },
    ];
  },
});
