import {
  AlreadyExistsError,
  ApiError,
  ConflictError,
  ForbiddenError,
  isRefusal,
  NotFoundError,
  TransportError,
} from '../../kube/client/api-error.ts';

/**
 * What the failure of a request means for the journal.
 *
 * - `conflict`: the shard has changed since it was read.
 * - `gone`: the shard's object does not exist; after a creation: its namespace, or the whole resource.
 * - `forbidden`: a permission is missing, or the server has just started and knows no permissions yet.
 * - `refused`: the same again for as long as nobody changes the cluster.
 * - `transient`: to be repeated; a write may have been carried out.
 * - `ended`: nothing leaves this process any more.
 */
export type WriteFailure = 'conflict' | 'gone' | 'forbidden' | 'refused' | 'transient' | 'ended';

/** A server that has just started forbids everything until it has read its roles, in milliseconds. */
export const forbiddenGraceMs = 3000;

export function classifyFailure(error: unknown): WriteFailure {
  if (error instanceof ConflictError || error instanceof AlreadyExistsError) return 'conflict';
  if (error instanceof NotFoundError) return 'gone';
  if (error instanceof ForbiddenError) return error.isAdmission ? 'refused' : 'forbidden';
  if (isRefusal(error)) return 'refused';
  return error instanceof ApiError || error instanceof TransportError ? 'transient' : 'ended';
}

/** The rule to add, where a missing permission is the cause. */
export function missingRuleOf(error: Error): string | undefined {
  return error instanceof ForbiddenError && !error.isAdmission ? error.missingRule : undefined;
}
