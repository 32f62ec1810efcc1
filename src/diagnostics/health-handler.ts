import { answerText } from './answer.ts';
import type { Handler } from './http-server.ts';

/**
 * Serves a health check: 200 `ok`, or 500 with the problem.
 *
 * @param check - the problem, or undefined while all is well. Must not wait.
 * @see Kubernetes, "Configure Liveness, Readiness and Startup Probes".
 */
export function healthHandler(check: () => string | undefined): Handler {
  return (_request, response) => {
    const problem = check();
    if (problem === undefined) answerText(response, 200, 'ok');
    else answerText(response, 500, `internal server error: ${problem}\n`);
  };
}
