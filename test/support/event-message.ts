import assert from 'node:assert/strict';
import type { SandboxClient, SandboxObject } from '../../sandbox/api/client.ts';

export interface RecordedEvent extends SandboxObject {
  involvedObject: { uid: string };
  reason: string;
  message: string;
}

/** Message of the newest event with this reason about an object. @throws {AssertionError} while there is none. */
export function eventMessage(api: SandboxClient, uid: string, reason: string): string {
  const events = api.list({ group: '', version: 'v1', plural: 'events' }) as RecordedEvent[];
  const found = events.findLast((event) => event.involvedObject.uid === uid && event.reason === reason);
  assert.ok(found, `no event ${reason}`);
  return found.message;
}
