import type { IncomingMessage, ServerResponse } from 'node:http';

/** Responds with a short text. Unless it is a success, browsers must not guess its type. */
export function sendText(response: ServerResponse, status: number, text: string): void {
  response.statusCode = status;
  response.setHeader('Content-Type', 'text/plain; charset=utf-8');
  if (status !== 200) response.setHeader('X-Content-Type-Options', 'nosniff');
  response.end(text);
}

/** The response for a path that is not served, as Go gives it. */
export function sendNotFound(response: ServerResponse): void {
  sendText(response, 404, '404 page not found\n');
}

/** Responds with a page. */
export function sendHtml(response: ServerResponse, html: string): void {
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.end(html);
}

/** Responds with a file to save. */
export function sendFile(response: ServerResponse, name: string, content: string | Buffer): void {
  response.setHeader('Content-Type', 'application/octet-stream');
  response.setHeader('Content-Disposition', `attachment; filename="${name}"`);
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.end(content);
}

/**
 * Serves a health check: 200 `ok`, or 500 with the problem.
 *
 * @param check - the problem, or undefined while all is well. Must not wait.
 * @see Kubernetes, "Configure Liveness, Readiness and Startup Probes".
 */
export function healthHandler(
  check: () => string | undefined,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (_request, response) => {
    const problem = check();
    if (problem === undefined) sendText(response, 200, 'ok');
    else sendText(response, 500, `internal server error: ${problem}\n`);
  };
}
