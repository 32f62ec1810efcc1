const annotationToken = /\$\{pvc\.annotations\['([^}]*)'\]\}/g;

/**
 * Keys of the claim annotations that the parameters of a class refer to in templates, such as
 * `${pvc.annotations['team']}`.
 */
export function templateAnnotations(parameters: Record<string, string>): string[] {
  return Object.values(parameters).flatMap((value) =>
    Array.from(value.matchAll(annotationToken), ([, key = '']) => key),
  );
}
