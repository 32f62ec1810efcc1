import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '../../src/base/clock.ts';
import type { FaultAction } from './faults.ts';
import type { StatusError } from './status-error.ts';

const warningsLength = 4096;
const longWarningLength = 256;

/** The response to one request, with the faults that act on its bytes. */
export class Reply {
  readonly response: ServerResponse;
  readonly #clock: Clock;
  readonly #warnings = new Set<string>();
  /** Acts on the response: `dropAfter`, `truncate` or `throttleBytes`. */
  fault: FaultAction | undefined;

  constructor(response: ServerResponse, options: { clock: Clock }) {
    this.response = response;
    this.#clock = options.clock;
    response.setHeader('Audit-Id', randomUUID());
    response.setHeader('Cache-Control', 'no-cache, private');
  }

  /** Adds a `Warning` header to the response. */
  warn(text: string): void {
    this.#warnings.add(text);
  }

  /** Sends JSON text, given in one piece or in parts. */
  json(code: number, body: string | readonly string[], contentType = 'application/json'): void {
    this.#send(code, contentType, typeof body === 'string' ? [body] : body);
  }

  text(code: number, body: string, contentType = 'text/plain; charset=utf-8'): void {
    this.#send(code, contentType, [body]);
  }

  /** Sends a body that is not text. */
  bytes(code: number, body: Uint8Array, contentType: string): void {
    this.#send(code, contentType, [body]);
  }

  error(error: StatusError): void {
    const { details } = error;
    if (details?.retryAfterSeconds !== undefined) {
      this.response.setHeader('Retry-After', String(details.retryAfterSeconds));
    }
    if (error.code === 403) this.response.setHeader('X-Content-Type-Options', 'nosniff');
    this.json(error.code, JSON.stringify(error.toStatus()));
  }

  /** Aborts the connection so that the client sees a reset. */
  abort(): void {
    const { socket } = this.response;
    if (socket === null) this.response.destroy();
    else socket.resetAndDestroy();
  }

  #send(code: number, contentType: string, parts: readonly (string | Uint8Array)[]): void {
    const { response, fault } = this;
    if (response.headersSent || response.destroyed) return;
    if (fault?.type === 'dropAfter') {
      this.abort();
      return;
    }
    response.statusCode = code;
    response.setHeader('Content-Type', contentType);
    response.setHeader(
      'Content-Length',
      parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0),
    );
    if (this.#warnings.size > 0) {
      response.setHeader(
        'Warning',
        shortened([...this.#warnings]).map((text) => `299 - ${JSON.stringify(text.replaceAll(/[^\x20-\x7e]/g, '?'))}`),
      );
    }
    if (fault?.type === 'truncate') {
      this.#truncated(Buffer.from(parts.join('')).subarray(0, fault.bytes));
      return;
    }
    if (fault?.type === 'throttleBytes') {
      this.#throttled(Buffer.from(parts.join('')), fault.bytesPerSecond);
      return;
    }
    const [only] = parts;
    if (parts.length === 1) response.end(only);
    else {
      for (const part of parts) response.write(part);
      response.end();
    }
  }

  #truncated(bytes: Buffer): void {
    if (bytes.length === 0) {
      this.response.flushHeaders();
      this.response.destroy();
    } else this.response.write(bytes, () => this.response.destroy());
  }

  #throttled(bytes: Buffer, bytesPerSecond: number): void {
    const { response } = this;
    const slice = Math.max(1, Math.floor(bytesPerSecond / 10));
    let sent = 0;
    let timer: Timer | undefined;
    response.once('close', () => timer?.cancel());
    const next = (): void => {
      if (response.destroyed) return;
      response.write(bytes.subarray(sent, sent + slice));
      sent += slice;
      if (sent >= bytes.length) response.end();
      else timer = this.#clock.after(100, next);
    };
    next();
  }
}

/** Not more warnings than clients take as headers: of many, the beginnings of the first. */
function shortened(warnings: readonly string[]): string[] {
  if (warnings.join('').length <= warningsLength) return [...warnings];
  return warnings.map((text) => text.slice(0, longWarningLength)).slice(0, warningsLength / longWarningLength);
}
