import type { IncomingMessage } from 'node:http';
import type { Reply } from './reply.ts';

/** A request for something that is no resource. */
export interface PathRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly reply: Reply;
}
