/** The memory limit is too small for the claims and volumes of a cluster. */
import { formatQuantity, parseQuantity, quantityBytes, QuantityError } from '../../../base/quantity.ts';
import { limitOf } from '../container-limit.ts';
import { defineFinding, type Found } from './preflight-finding.ts';

/** Of docs/scale.md: resident memory without any volume, and for each pair of a claim and a volume at the peak, in bytes. */
const idleBytes = 85_000_000;
const pairBytes = 1200;
/** What is left free. */
const margin = 1.2;
/** A cluster of this many volumes is nothing unusual. */
const usualPairs = 20_000;
const recommended = 512 * 1024 * 1024;

export const memoryLimit = defineFinding({
  name: 'memory',
  check({ container }) {
    const limit = limitOf(container, 'memory');
    if (limit === undefined) return [];
    try {
      return found(formatQuantity(parseQuantity(limit)), Number(quantityBytes(limit)));
    } catch (error) {
      if (!(error instanceof QuantityError)) throw error;
      throw container.fields.problem('resources.limits.memory', `is no quantity: ${error.message}`);
    }
  },
});

function found(text: string, bytes: number): Found[] {
  if (bytes >= recommended) return [];
  const pairs = Math.max(0, Math.floor((bytes / margin - idleBytes) / pairBytes / 1000) * 1000);
  const cure = 'Set 512Mi to begin with, and see process_resident_memory_bytes: docs/scale.md.';
  if (pairs === 0) {
    return [
      {
        level: 'must',
        message: `Its memory limit of ${text} was made for a Go program: the process needs 85 MB before the first volume, and may be killed when it starts or fills its caches.`,
        cure,
      },
    ];
  }
  const message = `Its memory limit of ${text} is enough for about ${pairs.toLocaleString('en-US')} volumes in the cluster, of any driver: the process needs 85 MB, and 1.2 kB for each volume with its claim.`;
  return pairs < usualPairs ? [{ level: 'warning', message, cure }] : [{ level: 'note', message }];
}
