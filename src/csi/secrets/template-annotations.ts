import { expandTemplate } from './secret-template.ts';

const annotationToken = /^pvc\.annotations\['(.*)'\]$/s;

/**
 * The keys of the claim annotations that templates in the parameters of a class refer to, such as
 * `${pvc.annotations['team']}`.
 */
export function templateAnnotations(parameters: Record<string, string>): string[] {
  const keys: string[] = [];
  const values = {
    get: (token: string): string => {
      const key = annotationToken.exec(token)?.[1];
      if (key !== undefined) keys.push(key);
      return '';
    },
  };
  for (const template of Object.values(parameters)) expandTemplate(template, values);
  return keys;
}
