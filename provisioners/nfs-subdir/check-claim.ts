import { type PersistentVolumeClaim, ProvisionError } from '../../src/index.ts';

/**
 * Refuses what a directory of an export cannot fulfil.
 *
 * @throws {ProvisionError} state `finished` for a claim with a selector, even an empty one, or with a data source: it would
 * get an empty volume.
 */
export function checkClaim({ spec }: PersistentVolumeClaim, provisionerName: string): void {
  if (spec.selector !== undefined) throw new ProvisionError('claim Selector is not supported', { state: 'finished' });
  const source = spec.dataSourceRef ?? spec.dataSource;
  if (source === undefined) return;
  const named = `${source.kind} ${JSON.stringify(source.name)}`;
  const message = `${provisionerName} does not fill volumes: the claim's data source, ${named}, is not supported`;
  throw new ProvisionError(message, { state: 'finished' });
}
