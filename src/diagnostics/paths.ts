import { parsePathPattern, PathPatternError } from './path-pattern.ts';

/** Where the health of leader election is served. */
export const healthPath = '/healthz/leader-election';

/** For liveness probes: the health of leader election where there is one; else it responds as long as the process runs. */
export const livePath = '/healthz';

/** Whether the driver and the API server can be reached and the caches are filled: for readiness probes. */
export const readyPath = '/readyz';

/** Below which profiles are served; the path itself is their index. */
export const profilesPath = '/debug/pprof/';

/** Where the status page is; its files are below. */
export const statusPath = '/status';

/**
 * Checks that the metrics path can be served beside the others.
 *
 * @throws {PathPatternError} for a path that cannot be served, or that belongs to another handler.
 */
export function checkPaths(options: {
  metricsPath: string;
  health: boolean;
  profiles: boolean;
  statusPage: boolean;
}): void {
  const pattern = parsePathPattern(options.metricsPath);
  const taken = [
    ...(options.health ? [healthPath] : []),
    ...(options.profiles ? [profilesPath] : []),
    ...(options.statusPage ? [statusPath, `${statusPath}/`] : []),
  ];
  for (const path of taken) {
    if (pattern.text !== path) continue;
    throw new PathPatternError(`pattern "${path}" conflicts with pattern "${path}": both match the same requests`);
  }
}
