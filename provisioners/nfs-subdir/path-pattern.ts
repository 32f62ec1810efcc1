import type { PersistentVolumeClaim } from '../../src/index.ts';

/** `${.PVC.…}` up to the first brace. */
const token = /\$\{\.PVC\.([^}]*)\}/g;

/**
 * Expands the pattern of a class for a claim: `${.PVC.name}`, `${.PVC.namespace}`, `${.PVC.labels.KEY}` and
 * `${.PVC.annotations.KEY}`. What the claim lacks, and any other token, becomes empty; all other text stays as it is. In one
 * pass: a value that looks like a token is not expanded again, since users choose the values.
 */
export function expandPattern(pattern: string, { metadata }: Pick<PersistentVolumeClaim, 'metadata'>): string {
  const { name, namespace = '', labels = {}, annotations = {} } = metadata;
  return pattern.replaceAll(token, (_whole, field: string) => {
    if (field === 'name') return name;
    if (field === 'namespace') return namespace;
    return valueIn(labels, 'labels.', field) ?? valueIn(annotations, 'annotations.', field) ?? '';
  });
}

function valueIn(values: Record<string, string>, prefix: string, field: string): string | undefined {
  const key = field.slice(prefix.length);
  return field.startsWith(prefix) && Object.hasOwn(values, key) ? values[key] : undefined;
}
