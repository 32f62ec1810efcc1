import { request } from 'node:https';
import { patienceMs } from '../patience.ts';

/** Where and as whom to ask the API server. */
export interface ApiAccess {
  url: string;
  /** PEM of the certificate authority; `undefined` only before the server has made one. */
  ca: string | undefined;
  token: string;
}

export interface ApiResponse {
  status: number;
  body: string;
}

/**
 * One request to the API server, without a client library, so that starting a control plane needs none.
 *
 * @throws when no response arrives within `timeoutMs`, 120 s by default.
 */
export function apiRequest(
  { url, ca, token }: ApiAccess,
  method: string,
  path: string,
  { body, timeoutMs = patienceMs }: { body?: object; timeoutMs?: number } = {},
): Promise<ApiResponse> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const signal = AbortSignal.timeout(timeoutMs);
    const sent = request(new URL(path, url), { method, headers, ca, agent: false, signal }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
