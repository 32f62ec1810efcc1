import type { FaultAction, FaultRule } from './faults.ts';
import { isObject } from './json.ts';
import type { JsonObject } from './json.ts';
import { StatusError } from './status-error.ts';

/** Fields of each action: `number` and `string` must be there, with `?` they may. */
const actionFields: Record<FaultAction['type'], Record<string, 'number' | 'number?' | 'string' | 'string?'>> = {
  delay: { ms: 'number' },
  status: { code: 'number', reason: 'string?', message: 'string?', retryAfter: 'number?' },
  dropBefore: {},
  dropAfter: {},
  truncate: { bytes: 'number' },
  htmlBody: { code: 'number' },
  conflictOnce: {},
  staleRead: { rvBack: 'number' },
  watchCut: { afterMs: 'number?', afterEvents: 'number?', how: 'string?' },
  watchError: { code: 'number', reason: 'string' },
  watchStall: {},
  watchDelay: { ms: 'number' },
  watchDuplicate: {},
  noBookmarks: {},
  noWatchList: {},
  ignoreWatchListParams: {},
  compactNow: {},
  expireContinue: {},
  throttleBytes: { bytesPerSecond: 'number' },
  unavailable: { ms: 'number' },
};
const matchFields = ['user', 'userAgent', 'verb', 'group', 'resource', 'subresource', 'namespace', 'name'];
const countFields = ['probability', 'times', 'after', 'every'];

/** Reads a rule that came over HTTP. @throws {StatusError} `BadRequest` that names the first wrong field. */
export function parseFaultRule(body: JsonObject): FaultRule {
  const { match = {}, action, ...counts } = body;
  if (!isObject(match)) throw wrong('match', 'an object');
  for (const [field, value] of Object.entries(match)) {
    const wanted = field === 'watch' ? 'boolean' : matchFields.includes(field) ? 'string' : undefined;
    if (typeof value !== wanted) throw wrong(`match.${field}`, wanted ?? 'absent');
  }
  for (const [field, value] of Object.entries(counts)) {
    if (!countFields.includes(field)) throw wrong(field, 'absent');
    if (typeof value !== 'number') throw wrong(field, 'a number');
  }
  return { match: match, action: parseAction(action), ...counts };
}

function parseAction(action: unknown): FaultAction {
  if (!isObject(action) || typeof action['type'] !== 'string' || !Object.hasOwn(actionFields, action['type'])) {
    throw wrong('action.type', `one of ${Object.keys(actionFields).join(', ')}`);
  }
  const known = actionFields[action['type'] as FaultAction['type']];
  for (const field of Object.keys(action)) {
    if (field !== 'type' && !Object.hasOwn(known, field)) throw wrong(`action.${field}`, 'absent');
  }
  for (const [field, form] of Object.entries(known)) {
    const value = action[field];
    if (value === undefined && form.endsWith('?')) continue;
    if (typeof value !== form.replace('?', '')) throw wrong(`action.${field}`, `a ${form.replace('?', '')}`);
  }
  return action as FaultAction;
}

function wrong(field: string, wanted: string): StatusError {
  return new StatusError('BadRequest', `fault rule: ${field} must be ${wanted}`);
}
