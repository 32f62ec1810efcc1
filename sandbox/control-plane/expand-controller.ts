import type { SandboxClient, Subscription } from '../api/client.ts';
import { quantityNanos } from '../api/quantity.ts';
import { subscribeTo } from './object-access.ts';
import { resources, type Claim } from './objects.ts';

/**
 * The part of the volume expansion controller that a CSI volume leaves to it: it records that somebody else has to
 * expand the volume, which is the external-resizer in a cluster and nobody here, unless it is started by hand.
 */
export class ExpandController implements Disposable {
  readonly #client: SandboxClient;
  /** The request that was reported last, by the claim's uid. */
  readonly #reported = new Map<string, string>();
  #subscription: Subscription | undefined;

  constructor({ client }: { client: SandboxClient }) {
    this.#client = client;
  }

  start(): void {
    this.#subscription = subscribeTo(this.#client, resources.claims, ({ type, object }) => {
      if (type === 'DELETED') this.#reported.delete(object.metadata.uid ?? '');
      else this.#sync(object);
    });
  }

  [Symbol.dispose](): void {
    this.#subscription?.close();
  }

  #sync(claim: Claim): void {
    const request = claim.spec.resources?.requests?.['storage'];
    const [wanted, has] = [quantityNanos(request), quantityNanos(claim.status?.capacity?.['storage'])];
    if (claim.status?.phase !== 'Bound' || wanted === undefined || has === undefined || wanted <= has) return;
    const { uid = '' } = claim.metadata;
    if (this.#reported.get(uid) === String(request)) return;
    this.#reported.set(uid, String(request));
    const message = 'waiting for an external controller to expand this PVC';
    this.#client.recordEvent(claim, 'Normal', 'ExternalExpanding', message, 'volume_expand');
  }
}
