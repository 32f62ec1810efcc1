import type { Container } from './workload.ts';

/** A limit of a container, as it is written; undefined where it has none. */
export function limitOf({ fields }: Container, resource: 'cpu' | 'memory'): string | number | undefined {
  return fields.partAt('resources', 'limits')?.textOrNumber(resource);
}
