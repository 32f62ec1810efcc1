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

/** A pattern that Go's HTTP server refuses; the message is Go's. */
export class PathPatternError extends Error {
  override readonly name = 'PathPatternError';
}

/** A path of the server, matched as Go matches `--metrics-path`. */
export interface PathPattern {
  readonly text: string;
  /** Only requests with this host; empty: any. */
  readonly host: string;
  /** Whether a request is meant. `path` is already decoded. */
  readonly matches: (host: string, path: string) => boolean;
  /** Of two patterns that match, the one with the higher precision is used. */
  readonly precision: number;
}

/**
 * Reads a path as Go's `http.ServeMux` does: exact, a subtree if it ends in `/`, `{name}` for one segment,
 * `{name...}` for the rest, `{$}` for the end; with a host in front, for that host only.
 *
 * @throws {PathPatternError} for an empty one, one without a slash, one with a blank, or bad wildcards.
 * @see Go package `net/http`, "Patterns".
 */
export function parsePathPattern(text: string): PathPattern {
  if (text === '') throw new PathPatternError('http: invalid pattern');
  const blank = /[ \t]/.exec(text);
  if (blank !== null) throw invalid(text, 0, `invalid method "${text.slice(0, blank.index)}"`);
  const slash = text.indexOf('/');
  if (slash < 0) throw invalid(text, 0, 'host/path missing /');
  const host = text.slice(0, slash);
  const segments = text.slice(slash + 1).split('/');
  checkWildcards(text, segments, slash + 1);
  const expression = new RegExp(`^/${segments.map(segmentExpression).join('/')}$`, 's');
  return {
    text,
    host,
    precision: precision(host, segments),
    matches: (requestHost, path) => (host === '' || host === requestHost) && expression.test(path),
  };
}

/** A host counts most, then a pattern without any freedom, then how much of it is written out. */
function precision(host: string, segments: readonly string[]): number {
  const literal = segments.filter((segment) => segment !== '' && !segment.startsWith('{'));
  const exact = literal.length === segments.length || segments.at(-1) === '{$}';
  const subtree = segments.at(-1) === '' || segments.at(-1)?.endsWith('...}') === true;
  return (host === '' ? 0 : 1e9) + (exact ? 1e6 : 0) + literal.join('/').length + (subtree ? 0 : 0.5);
}

function segmentExpression(segment: string, index: number, all: readonly string[]): string {
  const last = index === all.length - 1;
  if (segment === '{$}') return '';
  if (segment === '' && last) return '.*'; // a trailing slash is the subtree below it
  if (segment.endsWith('...}')) return '.*';
  return segment.startsWith('{') ? '[^/]+' : escape(segment);
}

function escape(literal: string): string {
  return literal.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

function checkWildcards(text: string, segments: readonly string[], start: number): void {
  const names = new Set<string>();
  let offset = start;
  for (const [index, segment] of segments.entries()) {
    if (/[{}]/.test(segment)) checkWildcard(text, segment, { offset, last: index === segments.length - 1, names });
    offset += segment.length + 1;
  }
}

function checkWildcard(text: string, segment: string, at: { offset: number; last: boolean; names: Set<string> }): void {
  if (!/^\{[^{}]*\}$/.test(segment)) throw invalid(text, at.offset, 'bad wildcard segment (must be whole segment)');
  const name = segment.slice(1, -1);
  if (name === '$') {
    if (!at.last) throw invalid(text, at.offset, '{$} not at end');
    return;
  }
  const plain = name.replace(/\.\.\.$/, '');
  if (plain !== name && !at.last) throw invalid(text, at.offset, '{...} wildcard not at end');
  if (plain === '') throw invalid(text, at.offset, 'empty wildcard');
  if (!/^[\p{L}_][\p{L}\p{Nd}_]*$/u.test(plain)) throw invalid(text, at.offset, `bad wildcard name "${plain}"`);
  if (at.names.has(plain)) throw invalid(text, at.offset, `duplicate wildcard name "${plain}"`);
  at.names.add(plain);
}

function invalid(text: string, offset: number, reason: string): PathPatternError {
  return new PathPatternError(`parsing ${JSON.stringify(text)}: at offset ${offset}: ${reason}`);
}
