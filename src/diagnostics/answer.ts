import type { IncomingMessage, ServerResponse } from 'node:http';

/** Answers with a short text. Unless it is a success, browsers must not guess its type. */
export function answerText(response: ServerResponse, status: number, text: string): void {
  response.statusCode = status;
  response.setHeader('Content-Type', 'text/plain; charset=utf-8');
  if (status !== 200) response.setHeader('X-Content-Type-Options', 'nosniff');
  response.end(text);
}

/** The answer for a path that is not served, as Go gives it. */
export function answerNotFound(response: ServerResponse): void {
  answerText(response, 404, '404 page not found\n');
}

/** Answers with a page. */
export function answerHtml(response: ServerResponse, html: string): void {
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.end(html);
}

/** Answers with a file to save. */
export function answerFile(response: ServerResponse, name: string, content: string | Buffer): void {
  startFile(response, name);
  response.end(content);
}

/** Begins an answer that is a file to save; its content follows. */
export function startFile(response: ServerResponse, name: string): void {
  response.setHeader('Content-Type', 'application/octet-stream');
  response.setHeader('Content-Disposition', `attachment; filename="${name}"`);
  response.setHeader('X-Content-Type-Options', 'nosniff');
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
    if (problem === undefined) answerText(response, 200, 'ok');
    else answerText(response, 500, `internal server error: ${problem}\n`);
  };
}
