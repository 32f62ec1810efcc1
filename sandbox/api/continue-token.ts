import { isObject } from './json.ts';
import { StatusError } from './status-error.ts';

/** Where the next page of a list begins. */
export interface ContinuePoint {
  /** RV of the first page; -1 for a list that goes on with the state of the day. */
  readonly rv: number;
  /** Key of the last object shown. */
  readonly after: string;
}

/** The opaque token of a point. */
export function encodeContinue({ rv, after }: ContinuePoint): string {
  return Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv, start: `${after}\0` })).toString('base64url');
}

/** @throws {StatusError} `BadRequest` for a token that no server of this kind gave out. */
export function decodeContinue(token: string): ContinuePoint {
  try {
    const point: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (isObject(point) && point['v'] === 'meta.k8s.io/v1' && Number.isInteger(point['rv'])) {
      const { rv, start } = point as { rv: number; start: unknown };
      if (typeof start === 'string') return { rv, after: start.slice(0, -1) };
    }
  } catch {
    // Not JSON: the same response as for JSON that is no token.
  }
  throw new StatusError('BadRequest', 'continue key is not valid: it was not issued by this server');
}
