/** What stands on the wire for one of the client library's models: no class, no `undefined`, fit for `deepEqual`. */
export function plainJson(value: unknown): Record<string, unknown> {
  return JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
}
