import { Watch } from '@kubernetes/client-node';
import { loadKubeconfig } from '../support/admin.ts';

/** One state of a Lease. */
export interface LeaseState {
  /** `Date.now()` when it was seen. */
  atMs: number;
  /** Empty: nobody. */
  holder: string;
  /** When its holder got it and last renewed it, by the holder's clock, as `Date.now()`. */
  acquiredMs: number;
  renewedMs: number;
}

/** Follows who holds a Lease, from now on. */
export interface LeaseWatch extends Disposable {
  /** Oldest first. */
  readonly states: readonly LeaseState[];
}

/** What a watch gives; it makes no models of it. */
interface WireSpec {
  holderIdentity?: string;
  acquireTime: string;
  renewTime: string;
}

/** Starts to watch a Lease, which need not exist yet. */
export async function watchLease(kubeconfig: string, namespace: string, name: string): Promise<LeaseWatch> {
  const states: LeaseState[] = [];
  const watch = new Watch(loadKubeconfig(kubeconfig));
  const request = await watch.watch(
    `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`,
    { fieldSelector: `metadata.name=${name}` },
    (_phase, { spec }: { spec: WireSpec }) =>
      states.push({
        atMs: Date.now(),
        holder: spec.holderIdentity ?? '',
        acquiredMs: Date.parse(spec.acquireTime),
        renewedMs: Date.parse(spec.renewTime),
      }),
    () => undefined,
  );
  return { states, [Symbol.dispose]: () => request.abort() };
}
