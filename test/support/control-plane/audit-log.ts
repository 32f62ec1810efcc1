import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

/** `Metadata` is who asked for what and the answer's code, `Request` has the request's body too. */
export type AuditLevel = 'Metadata' | 'Request';

/** One answered request (Kubernetes page "Auditing", audit.k8s.io/v1 Event); the fields that tests and benches read. */
export interface AuditEvent {
  auditID: string;
  stage: string;
  verb: string;
  requestURI: string;
  user: { username: string };
  userAgent?: string;
  objectRef?: {
    resource?: string;
    subresource?: string;
    namespace?: string;
    name?: string;
    apiGroup?: string;
  };
  responseStatus?: { code?: number };
  requestObject?: unknown;
  /** RFC 3339 with microseconds: when the request arrived. */
  requestReceivedTimestamp: string;
  /** RFC 3339 with microseconds: when this stage was reached. */
  stageTimestamp: string;
}

/**
 * A policy that records every request once, when it is answered. A watch is recorded when its answer starts and
 * again when it ends, so that one that is still open counts.
 */
export function auditPolicy(level: AuditLevel): object {
  return {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'],
    rules: [{ level }],
  };
}

/** Reads an audit log event by event; a last line that is still being written is left out. */
export async function* readAuditLog(path: string): AsyncGenerator<AuditEvent> {
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
    if (line.endsWith('}')) yield JSON.parse(line) as AuditEvent;
  }
}
