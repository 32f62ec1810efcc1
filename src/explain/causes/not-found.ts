/** The claim or volume does not exist. */
import { shellWord } from '../../base/shell-word.ts';
import type { Reading } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { defineCause } from './cause.ts';

export const notFound = defineCause({ name: 'not-found' });

/** Of a claim that was not found, or could not be read. */
export function claimNotRead(namespace: string, name: string): (reading: Reading<unknown>) => Finding {
  return (reading) =>
    reading.kind === 'unreadable'
      ? { state: 'unknown', detail: reading.why }
      : {
          state: 'unknown',
          cause: 'not-found',
          message: `There is no claim ${namespace}/${name}.`,
          cure: `List the claims: kubectl get pvc --namespace ${shellWord(namespace) ?? 'NAMESPACE'}`,
        };
}

/** The same of a volume. */
export function volumeNotRead(name: string): (reading: Reading<unknown>) => Finding {
  return (reading) =>
    reading.kind === 'unreadable'
      ? { state: 'unknown', detail: reading.why }
      : {
          state: 'unknown',
          cause: 'not-found',
          message: `There is no PersistentVolume ${name}.`,
          cure: 'List the volumes: kubectl get pv',
        };
}
