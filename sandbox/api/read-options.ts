import { forbidden, invalidObject, notSupported } from './field-error.ts';
import type { FieldError } from './field-error.ts';
import { StatusError } from './status-error.ts';

/** The query of a list or watch (`ListOptions`; Kubernetes, "API Concepts"). */
export interface ReadOptions {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** 0 or absent: everything. */
  readonly limit: number;
  readonly continueToken?: string;
  /** Absent if unset; 0 means any state. */
  readonly resourceVersion?: number;
  readonly resourceVersionMatch?: string;
  readonly watch: boolean;
  readonly bookmarks: boolean;
  readonly timeoutSeconds?: number;
  readonly sendInitialEvents?: boolean;
}

/**
 * @param options.watchList - whether the server streams lists; without it `sendInitialEvents` is an error.
 * @throws {StatusError} `BadRequest` for an unreadable value, `Invalid` for options that do not go together.
 */
export function parseReadOptions(query: URLSearchParams, { watchList }: { watchList: boolean }): ReadOptions {
  const options: ReadOptions = {
    ...text(query, 'labelSelector', 'labelSelector'),
    ...text(query, 'fieldSelector', 'fieldSelector'),
    limit: integer(query, 'limit') ?? 0,
    ...text(query, 'continue', 'continueToken'),
    ...defined('resourceVersion', integer(query, 'resourceVersion')),
    ...text(query, 'resourceVersionMatch', 'resourceVersionMatch'),
    watch: flag(query, 'watch') === true,
    bookmarks: flag(query, 'allowWatchBookmarks') === true,
    ...defined('timeoutSeconds', integer(query, 'timeoutSeconds')),
    ...defined('sendInitialEvents', flag(query, 'sendInitialEvents')),
  };
  const errors = options.watch ? watchErrors(options, watchList) : listErrors(options);
  if (errors.length > 0) throw invalidObject('ListOptions', 'meta.k8s.io', '', errors);
  if (options.continueToken !== undefined && (options.resourceVersion ?? 0) !== 0) {
    throw new StatusError('BadRequest', 'specifying resource version is not allowed when using continue');
  }
  return options;
}

function listErrors(options: ReadOptions): FieldError[] {
  const { resourceVersionMatch: match, resourceVersion, continueToken, sendInitialEvents } = options;
  const errors: FieldError[] = [];
  if (sendInitialEvents !== undefined) {
    errors.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  if (match === undefined) return errors;
  const field = 'resourceVersionMatch';
  if (continueToken !== undefined) errors.push(forbidden(field, `${field} is forbidden when continue is provided`));
  if (resourceVersion === undefined)
    errors.push(forbidden(field, `${field} is forbidden unless resourceVersion is provided`));
  if (match !== 'Exact' && match !== 'NotOlderThan') errors.push(notSupported(field, match, ['Exact', 'NotOlderThan']));
  if (match === 'Exact' && resourceVersion === 0) {
    errors.push(forbidden(field, `${field} "exact" is forbidden for resourceVersion "0"`));
  }
  return errors;
}

function watchErrors(options: ReadOptions, watchList: boolean): FieldError[] {
  const { resourceVersionMatch: match, sendInitialEvents } = options;
  if (sendInitialEvents === undefined) {
    if (match === undefined) return [];
    return [
      forbidden(
        'resourceVersionMatch',
        'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      ),
    ];
  }
  if (!watchList) {
    return [
      forbidden(
        'sendInitialEvents',
        'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled',
      ),
    ];
  }
  if (match === undefined) {
    return [
      forbidden('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'),
    ];
  }
  return match === 'NotOlderThan' ? [] : [notSupported('resourceVersionMatch', match, ['NotOlderThan'])];
}

function defined<Name extends string, Value>(name: Name, value: Value | undefined): Partial<Record<Name, Value>> {
  const found: Partial<Record<Name, Value>> = {};
  if (value !== undefined) found[name] = value;
  return found;
}

function text<Name extends string>(
  query: URLSearchParams,
  parameter: string,
  name: Name,
): Partial<Record<Name, string>> {
  const value = query.get(parameter);
  return value === null || value === '' ? {} : ({ [name]: value } as Partial<Record<Name, string>>);
}

function integer(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name);
  if (value === null || value === '') return undefined;
  if (/^\d+$/.test(value)) return Number(value);
  if (name === 'resourceVersion') {
    throw new StatusError('BadRequest', `invalid resource version: ${name}: Invalid value: ${JSON.stringify(value)}`);
  }
  throw new StatusError('BadRequest', `invalid value for ${name}: ${JSON.stringify(value)} is not a whole number`);
}

function flag(query: URLSearchParams, name: string): boolean | undefined {
  const value = query.get(name);
  if (value === null) return undefined;
  return !(value === '' ? name !== 'watch' : value === 'false' || value === '0');
}
