/** What it means that the API server refuses to create a claim or Pod, by its text, and what to do about it. */
import { formatQuantity, parseQuantity } from '../../base/quantity.ts';
import type { PersistentVolumeClaim, QuantityText } from '../../provision/objects.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { claimOfSet, type ClaimOwner, ordinalsOf, type Workload } from '../claim-owners.ts';
import { found } from '../cluster-reader.ts';
import type { Finding, Holding } from '../explanation.ts';
import { missingRight, rightCure } from '../missing-right.ts';
import { failuresText } from '../provisioning-events.ts';
import { amounts, type Needed, type RefusedObject } from '../refused-creations.ts';
import { durationText, withCommand } from '../texts.ts';

/** Who is refused what. */
export interface RefusedCreation {
  namespace: string;
  /** As kubectl names it, such as `statefulset/web`. */
  owner: string;
  /** `claim` of a StatefulSet, whose templates cannot be changed; `ephemeral` of a Pod. */
  what: 'claim' | 'ephemeral' | 'pod';
}

export interface RefusalMeaning {
  cause: 'rejected' | 'api-server';
  /** Without a full stop; a command comes last. */
  cure: string;
}

interface Refusal {
  pattern: RegExp;
  cause?: 'api-server';
  cure: (match: readonly string[], refused: RefusedCreation) => string;
}

/** The first one that fits decides. The texts are those of the admission plugins and of validation. */
const refusals: readonly Refusal[] = [
  {
    pattern: /exceeded quota: (.+?), requested: (.+?), used: (.+?), limited: ([^\s,]+(?:,[^\s,=]+=[^\s,]+)*)/,
    cure: ([, quota = '', requested = '', used = ''], { namespace }) =>
      withCommand(
        `Raise ResourceQuota ${quota}, or delete what counts against it`,
        quotaCommand(quota, requested, used, namespace),
      ),
  },
  {
    pattern: /failed quota: (.+?): must specify (.+)/,
    cure: ([, quota = '', resources = ''], { namespace, owner }) =>
      withCommand(
        `ResourceQuota ${quota} is for Pods with requests and limits: set ${resources} in the Pod template, or create a LimitRange with defaults`,
        edit(owner, namespace),
      ),
  },
  {
    pattern: /status unknown for quota: ([^\s,]+)/,
    cure: ([, quota = ''], { namespace }) =>
      withCommand(
        `kube-controller-manager has not counted what ResourceQuota ${quota} limits: check that it runs. The quota as it is`,
        ['kubectl', 'get', 'resourcequota', quota, '-n', namespace, '-o', 'yaml'],
      ),
  },
  {
    pattern: /(?:minimum|maximum) \S+ usage per (\S+) is/i,
    cure: ([, kind = ''], refused) =>
      kind === 'PersistentVolumeClaim'
        ? withCommand(
            `Request a size within the LimitRange (kubectl get limitrange -n ${refused.namespace}), or change that. ${changeTemplate(refused)}`,
            changeCommand(refused),
          )
        : withCommand(
            `Set requests and limits in the Pod template within the LimitRange (kubectl get limitrange -n ${refused.namespace}), or change that`,
            edit(refused.owner, refused.namespace),
          ),
  },
  {
    pattern: /violates PodSecurity "/,
    cure: (_, { namespace }) =>
      withCommand(
        'Correct the securityContext in the Pod template as the message says, or permit such Pods in the namespace',
        ['kubectl', 'label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=privileged', '--overwrite'],
      ),
  },
  {
    pattern: /serviceaccount "([^"]+)" not found/,
    cure: ([, account = ''], { namespace }) =>
      withCommand('Create the ServiceAccount, or correct serviceAccountName in the Pod template', [
        ...['kubectl', 'create', 'serviceaccount', account, '-n', namespace],
      ]),
  },
  {
    pattern: /no PriorityClass with name (\S+) was found/,
    cure: ([, name = '']) =>
      withCommand('Create the PriorityClass, or correct priorityClassName in the Pod template', [
        ...['kubectl', 'create', 'priorityclass', name, '--value=1000'],
      ]),
  },
  {
    pattern: /RuntimeClass "([^"]+)" not found/,
    cure: ([, name = ''], { namespace, owner }) =>
      withCommand(
        `Create RuntimeClass ${name}, or correct runtimeClassName in the Pod template`,
        edit(owner, namespace),
      ),
  },
  {
    pattern: /ValidatingAdmissionPolicy '([^']+)' (?:with binding '[^']+' )?denied request/,
    cure: ([, policy = ''], refused) =>
      withCommand(`Do what the policy asks for, or have the policy changed. ${changeTemplate(refused)} The policy`, [
        'kubectl',
        'get',
        'validatingadmissionpolicy',
        policy,
        '-o',
        'yaml',
      ]),
  },
  {
    pattern: /admission webhook "([^"]+)" denied the request/,
    cure: ([, webhook = ''], refused) =>
      withCommand(
        `Do what webhook ${webhook} asks for, or have its configuration changed. ${changeTemplate(refused)} The webhooks`,
        ['kubectl', 'get', 'validatingwebhookconfigurations,mutatingwebhookconfigurations'],
      ),
  },
  {
    pattern: /failed calling webhook "([^"]+)".*service "[^"]+" not found/s,
    cause: 'api-server',
    cure: ([, webhook = '']) =>
      withCommand(
        `The Service of webhook ${webhook} does not exist: reinstall what it belongs to or, if that was removed on purpose, delete its webhook configuration, too. The webhooks`,
        ['kubectl', 'get', 'validatingwebhookconfigurations,mutatingwebhookconfigurations'],
      ),
  },
  {
    pattern: /failed calling webhook "([^"]+)"/,
    cause: 'api-server',
    cure: ([, webhook = '']) =>
      withCommand(
        `See whether webhook ${webhook} runs: the API server calls it for each such request. Its Service is in`,
        ['kubectl', 'get', 'validatingwebhookconfigurations,mutatingwebhookconfigurations', '-o', 'yaml'],
      ),
  },
  {
    pattern: /unable to create new content in namespace (\S+)/,
    cure: ([, namespace = '']) =>
      withCommand('Wait until the namespace is gone, and create it again', [
        ...['kubectl', 'get', 'namespace', namespace, '-o', 'yaml'],
      ]),
  },
  {
    pattern: /is invalid: /,
    cure: (_, refused) =>
      withCommand(`Correct the field that the message names. ${changeTemplate(refused)}`, changeCommand(refused)),
  },
  {
    pattern:
      /Operation cannot be fulfilled|timed out|try again|etcdserver|connection refused|context deadline exceeded/,
    cause: 'api-server',
    cure: () =>
      'Usually nothing: the request failed, and is sent again. If it lasts, see whether the API server responds',
  },
];

/** @param text - what the API server said. */
export function refusalMeaning(text: string, refused: RefusedCreation): RefusalMeaning {
  const right = missingRight(text);
  if (right !== undefined) return { cause: 'rejected', cure: rightCure(right) };
  for (const { pattern, cause = 'rejected', cure } of refusals) {
    const match = pattern.exec(text);
    if (match !== null) return { cause, cure: cure(match, refused) };
  }
  return {
    cause: 'rejected',
    cure: withCommand(`Correct what the message names. ${changeTemplate(refused)}`, changeCommand(refused)),
  };
}

function quotaCommand(quota: string, requested: string, used: string, namespace: string): string[] | undefined {
  const taken = amounts(used);
  const hard: Record<string, string> = {};
  for (const [key, amount] of amounts(requested)) {
    const sum = sumOf(amount, taken.get(key) ?? '0');
    if (sum === undefined) return undefined;
    hard[key] = sum;
  }
  const patch = JSON.stringify({ spec: { hard } });
  return ['kubectl', 'patch', 'resourcequota', quota, '-n', namespace, '--type=merge', '-p', patch];
}

function sumOf(one: string, other: string): string | undefined {
  try {
    const [a, b] = [parseQuantity(one), parseQuantity(other)];
    return formatQuantity({ nanos: a.nanos + b.nanos, format: a.format });
  } catch {
    return undefined;
  }
}

/** Of a claim: how its template is changed. */
function changeTemplate({ what, owner }: RefusedCreation): string {
  if (what !== 'claim') return '';
  return `The volumeClaimTemplates of ${owner} cannot be changed: delete it without its Pods, and create it again with other ones`;
}

function changeCommand({ what, owner, namespace }: RefusedCreation): string[] {
  if (what === 'claim') return ['kubectl', 'delete', owner, '-n', namespace, '--cascade=orphan'];
  if (what === 'ephemeral') return ['kubectl', 'get', owner, '-n', namespace, '-o', 'yaml'];
  return edit(owner, namespace);
}

function edit(owner: string, namespace: string): string[] {
  return ['kubectl', 'edit', owner, '-n', namespace];
}

/** What would be said now to the same request; undefined: the same, or that is not known. */
function curedText({ resource, name, requested, level, reading }: Needed): string | undefined {
  if (requested !== undefined) {
    if (reading.kind === 'missing') return `ResourceQuota ${name} is gone`;
    const { hard = {}, used = {} } = found(reading)?.status ?? {};
    const hasRoom = [...requested].every(([key, amount]) => {
      const [most, taken] = [hard[key], used[key] ?? 0];
      return most === undefined || nanos(amount) + nanos(taken) <= nanos(most);
    });
    return reading.kind === 'found' && hasRoom ? `ResourceQuota ${name} has room for it` : undefined;
  }
  if (reading.kind !== 'found') return undefined;
  if (level === undefined) return `${resource.kind} ${name} exists`;
  const enforced = reading.value.metadata.labels?.['pod-security.kubernetes.io/enforce'] ?? 'privileged';
  return enforced === level ? undefined : `the namespace enforces PodSecurity ${enforced}`;
}

function nanos(amount: QuantityText): bigint {
  return parseQuantity(amount).nanos;
}

/** Controllers double the pause after each failure, up to this, in milliseconds. */
const maxPauseMs = 1_000_000;
/** A request that fails for longer than this needs somebody, in milliseconds. */
const passingMs = 10 * 60_000;

export interface RefusalContext {
  /** What is not created, such as `claim data-web-0`. */
  created: string;
  what: RefusedCreation['what'];
  namespace: string;
  nowMs: number;
  needed?: Needed | undefined;
  /** The object whose template is edited, as kubectl names it. Default: the owner. */
  edited?: string | undefined;
}

/** What holds a claim that a controller cannot create, or whose Pod it cannot create. */
export function refusalHolding(
  { owner, refusal }: RefusedObject,
  { created, what, namespace, nowMs, needed, edited }: RefusalContext,
): Holding {
  const object = `${owner.kind.toLowerCase()}/${owner.name}`;
  const isPod = owner.kind === 'Pod';
  const who = isPod ? 'The controller of ephemeral volumes' : `${owner.kind} ${owner.name}`;
  const whole = isPod ? `${created} of Pod ${owner.name}` : created;
  const { cause, cure } = refusalMeaning(refusal.text, { namespace, owner: edited ?? object, what });
  const said = `${failuresText(refusal, nowMs)}. The API server: ${refusal.text}`;
  const cured = needed && curedText(needed);
  if (cured === undefined) {
    const passes = cause === 'api-server' && nowMs - refusal.sinceMs < passingMs;
    return {
      state: passes ? 'waiting' : 'stuck',
      cause,
      message: `${who} cannot create ${whole}: it ${said}`,
      cure,
    };
  }
  const leftMs = refusal.atMs + maxPauseMs - nowMs;
  const next = leftMs > 0 ? `the next attempt comes within ${durationText(leftMs + 1000)}` : 'the next attempt is late';
  const mark = `csi-provisioner/retry=${Math.floor(nowMs / 1000)}`;
  return {
    state: leftMs > 0 ? 'waiting' : 'stuck',
    cause,
    message: `${who} has not yet created ${whole}, and now ${cured}: ${next}. Before that it ${said}`,
    cure: isPod
      ? 'Nothing, or recreate the Pod to have it tried at once'
      : withCommand('Nothing, or have it tried at once', [
          ...['kubectl', 'annotate', object, '-n', namespace, mark, '--overwrite'],
        ]),
  };
}

/** The controllers whose Pods would use the claim: one cannot create them, or all have none to create. */
export function checkOwners({ claim, pods, owners, nowMs }: ClaimFacts): Finding | undefined {
  const isUsed = (found(pods) ?? []).some(({ metadata }) => metadata.deletionTimestamp === undefined);
  if (owners === undefined || isUsed || pods?.kind === 'unreadable') return undefined;
  if (owners.kind === 'unreadable') {
    return {
      state: 'unknown',
      detail: `whether a controller cannot create a Pod that would use the claim: ${owners.why}`,
    };
  }
  const { namespace = '', name } = claim.metadata;
  const all = found(owners) ?? [];
  for (const { kind, owner, refused, needed } of all) {
    if (refused === undefined) continue;
    const edited = `${kind.toLowerCase()}/${owner.metadata.name}`;
    return refusalHolding(refused, {
      created: createdText(refused, owner, name),
      what: 'pod',
      namespace,
      nowMs,
      needed,
      edited,
    });
  }
  const idle = all.map((each) => idleOwner(each, claim));
  return idle.every((each) => each !== undefined) ? idle[0] : undefined;
}

function createdText({ pod }: RefusedObject, owner: Workload, claimName: string): string {
  const ofClaim = claimOfSet(owner, claimName)?.pod ?? pod;
  if (pod === undefined) return 'the Pods that would use the claim';
  return pod === ofClaim
    ? `Pod ${pod}, which would use the claim`
    : `Pod ${pod}, and no Pod ${ofClaim ?? ''} before that`;
}

/** A controller that is not to create a Pod now; undefined for one that is. */
function idleOwner({ kind, owner }: ClaimOwner, claim: PersistentVolumeClaim): Holding | undefined {
  const { namespace = '', name } = claim.metadata;
  const object = `${kind.toLowerCase()}/${owner.metadata.name}`;
  const scaled = (replicas: number): string[] => [
    'kubectl',
    'scale',
    object,
    '-n',
    namespace,
    `--replicas=${replicas}`,
  ];
  const idle = (why: string, cure: string, words: readonly string[]): Holding => ({
    state: 'waiting',
    cause: 'waits-for-consumer',
    message: `No Pod uses the claim: ${kind} ${owner.metadata.name} would create one, and ${why}.`,
    cure: withCommand(cure, words),
  });
  const ofSet = claimOfSet(owner, name);
  const { first, last } = ordinalsOf(owner);
  if (ofSet !== undefined && ofSet.ordinal > last) {
    const replicas = Math.max(0, last - first + 1);
    return idle(
      `has ${replicas === 0 ? 'no replicas' : `${replicas} of them, up to ordinal ${last}`}`,
      'Nothing, if that is meant. Otherwise scale it',
      scaled(ofSet.ordinal - first + 1),
    );
  }
  const { desiredNumberScheduled, observedGeneration } = owner.status ?? {};
  if (kind === 'DaemonSet' && observedGeneration !== undefined && desiredNumberScheduled === 0) {
    return idle('fits no node', 'Correct nodeSelector, affinity or tolerations in its template, or label a node', [
      ...['kubectl', 'get', object, '-n', namespace, '-o', 'yaml'],
    ]);
  }
  if (owner.spec?.replicas === 0)
    return idle('has no replicas', 'Nothing, if that is meant. Otherwise scale it', scaled(1));
  if (owner.spec?.suspend !== true) return undefined;
  return idle('is suspended', 'Nothing, if that is meant. Otherwise resume it', [
    ...['kubectl', 'patch', object, '-n', namespace, '--type=merge', '-p', '{"spec":{"suspend":false}}'],
  ]);
}
