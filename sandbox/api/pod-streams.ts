import type { ResourceTarget } from './request-target.ts';
import { StatusError } from './status-error.ts';

/** What kubectl does inside a pod, by subresource. */
const streams: Readonly<Record<string, string>> = {
  log: 'there are no logs',
  exec: 'no command can run in it',
  attach: 'there is nothing to attach to',
  portforward: 'no port is open in it',
};

/** The 501 for what a pod of the sandbox cannot do; undefined for everything else. */
export function podStreamError({ group, plural, subresource }: ResourceTarget): StatusError | undefined {
  const why = group === '' && plural === 'pods' ? streams[subresource] : undefined;
  if (why === undefined) return undefined;
  return new StatusError('NotImplemented', `the sandbox runs no containers, it only marks pods as running: ${why}`, {
    code: 501,
  });
}
