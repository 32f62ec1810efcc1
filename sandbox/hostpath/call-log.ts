import { appendFileSync } from 'node:fs';

/** One line of `calls.jsonl`. */
export interface CallRecord {
  /** RFC 3339, when the call came in. */
  time: string;
  method: string;
  /** The request; of secrets only the keys. */
  request: object;
  /** `OK` or the status' name. */
  code: string;
  /** Absent for `OK`. */
  message?: string;
  /** How long the call took, in milliseconds. */
  ms: number;
  /** Present when the caller gave up before the response. */
  cancelled?: true;
}

/** The request as it may be shown: the values of `secrets` never leave the process. */
export function withoutSecretValues(request: object): object {
  const { secrets, ...rest } = request as { secrets?: object };
  return secrets === undefined ? rest : { ...rest, secrets: Object.keys(secrets).sort() };
}

/** Appends one call to the log; the line is whole even when many calls end at once. */
export function logCall(file: string, record: CallRecord): void {
  appendFileSync(file, JSON.stringify(record) + '\n');
}
