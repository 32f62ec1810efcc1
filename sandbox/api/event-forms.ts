import type { SandboxObject } from './client.ts';
import { isObject } from './json.ts';
import type { JsonObject } from './json.ts';

/** Field names of an event in `v1` and in `events.k8s.io/v1`; what is not named here is equal in both. */
const fieldPairs = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['reportingComponent', 'reportingController'],
  ['count', 'deprecatedCount'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['source', 'deprecatedSource'],
] as const;

const toNew = new Map<string, string>(fieldPairs);
const toCore = new Map<string, string>(fieldPairs.map(([core, other]) => [other, core]));

/** An event of `v1` in the form of `events.k8s.io/v1`. */
export function eventFromCore(event: SandboxObject): SandboxObject {
  return renameFields(withoutEmpty(event), toNew);
}

/** An event of `events.k8s.io/v1` in the form of `v1`, which is the stored one. */
export function eventToCore(event: SandboxObject): SandboxObject {
  return renameFields(event, toCore);
}

/** Only the old form shows fields that nobody set; `eventTime` is a field of both. */
function withoutEmpty(event: SandboxObject): SandboxObject {
  const { eventTime, ...rest } = event;
  const kept = Object.entries(rest).filter(([, value]) => {
    return value !== null && value !== '' && !(isObject(value) && Object.keys(value).length === 0);
  });
  return { ...Object.fromEntries(kept), ...(eventTime === undefined ? {} : { eventTime }) } as SandboxObject;
}

function renameFields(event: SandboxObject, names: Map<string, string>): SandboxObject {
  const renamed: JsonObject = {};
  for (const [field, value] of Object.entries(event)) renamed[names.get(field) ?? field] = value;
  return renamed as SandboxObject;
}
