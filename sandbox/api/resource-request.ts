import type { FaultAction } from './faults.ts';
import type { Reply } from './reply.ts';
import type { ResourceTarget, Verb } from './request-target.ts';
import type { VersionedType } from './resource-type.ts';

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
