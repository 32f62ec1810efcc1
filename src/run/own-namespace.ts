import { readFileSync } from 'node:fs';

const namespaceFile = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** The pod's own namespace, else `default`. @param file - where a pod finds it. */
export function ownNamespace(file = namespaceFile): string {
  try {
    const text = readFileSync(file, 'utf8').trim();
    return text === '' ? 'default' : text;
  } catch {
    return 'default'; // not in a pod
  }
}
