/** The CPU limit is so small that the process is slow to start. */
import { parseQuantity, QuantityError } from '../../../base/quantity.ts';
import { limitOf } from '../container-limit.ts';
import { defineFinding } from './preflight-finding.ts';

/** Of docs/scale.md: CPU time to fill the caches of 50,000 volumes with their claims, in seconds. */
const cpuSeconds = 4.2;
/** Below this many CPUs a start takes more than 40 s. */
const leastCpus = 0.1;

export const cpuLimit = defineFinding({
  name: 'cpu',
  check({ container }) {
    const limit = limitOf(container, 'cpu');
    if (limit === undefined) return [];
    const cpus = cpusOf(limit, (problem) => container.fields.problem('resources.limits.cpu', problem));
    if (cpus >= leastCpus) return [];
    const seconds = cpus > 0 ? Math.round(cpuSeconds / cpus).toLocaleString('en-US') : 'very many';
    return [
      {
        level: 'warning',
        message: `Its CPU limit of ${limit} was made for a Go program: with 50,000 volumes in the cluster a start takes about ${seconds} s, and a throttled leader may lose its Lease.`,
        cure: 'Remove the limit, or set at least 200m. The scheduler needs only the request.',
      },
    ];
  },
});

function cpusOf(limit: string | number, problem: (text: string) => Error): number {
  try {
    return Number(parseQuantity(limit).nanos) / 1e9;
  } catch (error) {
    if (!(error instanceof QuantityError)) throw error;
    throw problem(`is no quantity: ${error.message}`);
  }
}
