/** Replaces `$(NAME)` in a container's arguments, as the kubelet does (Kubernetes page "Define Dependent Environment Variables"). */

const reference = /\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)/g;

/** @param values - of the variables; a reference to any other stays as it is. `$$` is an escaped `$`. */
export function expandVariables(text: string, values: ReadonlyMap<string, string | undefined>): string {
  return text.replaceAll(reference, (found, name: string | undefined) =>
    name === undefined ? '$' : (values.get(name) ?? found),
  );
}
