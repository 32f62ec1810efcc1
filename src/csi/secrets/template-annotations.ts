const annotationToken = /\$\{pvc\.annotations\['([^}]*)'\]\}/g;

/** Keys of the annotations of claims that templates in the parameters of a class name, such as `${pvc.annotations['team']}`. */
export function templateAnnotations(parameters: Record<string, string>): string[] {
  return Object.values(parameters).flatMap((value) =>
    Array.from(value.matchAll(annotationToken), ([, key = '']) => key),
  );
}
