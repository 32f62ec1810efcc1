import type { DeleteOptions } from './deletion.ts';
import type { FaultAction } from './faults.ts';
import { invalidObject, notSupported } from './field-error.ts';
import { arrayAt, type JsonObject, objectAt } from './json.ts';
import type { WriteOptions } from './object-registry.ts';
import type { Reply } from './reply.ts';
import { objectTypes, parseObject } from './request-body.ts';
import type { ResourceTarget, Verb } from './request-target.ts';
import type { VersionedType } from './resource-type.ts';

/** Media types of patches that the kind takes. */
export function patchTypes({ type }: VersionedType): string[] {
  return [
    'application/json-patch+json',
    'application/merge-patch+json',
    'application/apply-patch+yaml',
    ...(type.custom ? [] : ['application/strategic-merge-patch+json']),
  ];
}

/** The query of a write. @throws {StatusError} `Invalid` for another dry run than `All`. */
export function writeOptions({ query, reply, verb }: Pick<ResourceRequest, 'query' | 'reply' | 'verb'>): WriteOptions {
  const validation = query.get('fieldValidation');
  const manager = query.get('fieldManager');
  return {
    dryRun: isDryRun(query.getAll('dryRun'), verb),
    ...(manager === null || manager === '' ? {} : { fieldManager: manager }),
    ...(validation === 'Ignore' || validation === 'Strict' || validation === 'Warn'
      ? { fieldValidation: validation }
      : {}),
    warn: (text) => reply.warn(text),
  };
}

function isDryRun(values: readonly unknown[], verb: Verb): boolean {
  if (values.some((value) => value !== 'All' && value !== '')) {
    const kind = `${verb.charAt(0).toUpperCase()}${verb.slice(1)}Options`;
    throw invalidObject(kind, 'meta.k8s.io', '', [notSupported('dryRun', values, ['All'])]);
  }
  return values.includes('All');
}

/** Options of a deletion: the body's, then those of the query. @throws {StatusError} for unreadable ones. */
export async function deleteOptions({
  body,
  contentType,
  query,
}: Pick<ResourceRequest, 'body' | 'contentType' | 'query'>): Promise<DeleteOptions> {
  const given = body.length === 0 ? {} : await parseObject(body, contentType, objectTypes);
  const options = readDeleteOptions(given);
  const grace = query.get('gracePeriodSeconds');
  return {
    ...options,
    dryRun: options.dryRun === true || isDryRun(query.getAll('dryRun'), 'delete'),
    ...(grace !== null && options.gracePeriodSeconds === undefined ? { gracePeriodSeconds: Number(grace) } : {}),
  };
}

/** `DeleteOptions` of a body. @throws {StatusError} `Invalid` for another dry run than `All`. */
export function readDeleteOptions(options: JsonObject): DeleteOptions {
  const { uid, resourceVersion } = objectAt(options, 'preconditions');
  const grace = options['gracePeriodSeconds'];
  return {
    ...(typeof uid === 'string' ? { uid } : {}),
    ...(typeof resourceVersion === 'string' ? { resourceVersion } : {}),
    ...(typeof grace === 'number' ? { gracePeriodSeconds: grace } : {}),
    dryRun: isDryRun(arrayAt(options, 'dryRun'), 'delete'),
  };
}

/** An authorised request for a resource that exists. */
export interface ResourceRequest {
  readonly verb: Verb;
  readonly target: ResourceTarget;
  readonly of: VersionedType;
  readonly query: URLSearchParams;
  readonly accept: string | undefined;
  readonly contentType: string;
  readonly body: Buffer;
  readonly reply: Reply;
  readonly fault: FaultAction | undefined;
  /** Aborts when the client goes away or the server stops. */
  readonly signal: AbortSignal;
}
