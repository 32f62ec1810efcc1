/** What the failure of a request to the API server means, by the response; the text only decides on the cure. */
import { failedRequestOf } from '../../kube/client/failed-request.ts';
import { apiServer } from './api-server.ts';
import { rejected } from './rejected.ts';
import type { Cause } from './cause.ts';

const causes = [apiServer, rejected];

export interface RequestMeaning {
  cause: Cause;
  /** Without a full stop. */
  cure: string;
  /** Whether it counts also where the text looks like that of another cause. */
  beatsTexts: boolean;
}

/**
 * @param known.error - what the attempt failed with; undefined outside of the process that made it.
 * @param known.recorded - the cause that the event about it names.
 * @returns undefined where no request has failed, and for an object that does not exist.
 */
export function requestMeaning(
  text: string,
  { error, recorded }: { error?: unknown; recorded?: string | undefined },
): RequestMeaning | undefined {
  const failed = failedRequestOf(error);
  for (const { name, request } of causes) {
    if (request === undefined || !(failed === undefined ? recorded === name : request.is(failed))) continue;
    const { cure = '' } = request.cures.find(({ pattern }) => pattern.test(text)) ?? request.cures.at(-1) ?? {};
    return { cause: name, cure, beatsTexts: request.beatsTexts };
  }
  return undefined;
}
