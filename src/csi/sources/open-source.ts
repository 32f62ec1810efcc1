/** Sources of recorded volumes: what must stay while the driver may be copying from it. */
import type { Plan } from '../../provision/recoverable.ts';

/** The object that must not be deleted while the driver copies from it. */
export type PlannedSource =
  | { handling: 'clone'; namespace: string; name: string; /** Of the claim that was read. */ uid: string }
  | { handling: 'snapshot'; namespace: string; name: string };

/** A source from which a volume in progress is copied, and for which claim. */
export interface OpenSource {
  claimUid: string;
  /** Namespace and name of that claim, which may be gone; its UID, where the plan does not say. */
  claim: string;
  source: PlannedSource;
}

/** The source that a plan names, also where the plan cannot be fulfilled: until it is discarded it counts. */
export function openSource(plan: Plan): OpenSource | undefined {
  const { claim: of, source } = plan as Readonly<
    Record<'claim' | 'source', Partial<Record<string, unknown>> | undefined>
  >;
  const { handling, namespace, name, uid } = source ?? {};
  const claimUid = of?.['uid'];
  if (typeof claimUid !== 'string' || typeof namespace !== 'string' || typeof name !== 'string') return undefined;
  const [ofNamespace, ofName] = [of?.['namespace'], of?.['name']];
  const claim = typeof ofNamespace === 'string' && typeof ofName === 'string' ? `${ofNamespace}/${ofName}` : claimUid;
  if (handling === 'snapshot') return { claimUid, claim, source: { handling, namespace, name } };
  if (handling !== 'clone' || typeof uid !== 'string') return undefined;
  return { claimUid, claim, source: { handling, namespace, name, uid } };
}

/** The sources of volumes that are recorded and may be in progress. */
export function* openSources(plans: Iterable<Plan>): Generator<OpenSource> {
  for (const plan of plans) {
    const open = openSource(plan);
    if (open !== undefined) yield open;
  }
}
