const namePart = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const prefixPart = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Whether a node can have a label of this name (Kubernetes page "Labels and Selectors", "Syntax and character set"). */
export function isLabelName(text: string): boolean {
  const [name = '', prefix, ...more] = text.split('/').reverse();
  if (more.length > 0 || !namePart.test(name)) return false;
  return prefix === undefined || (prefix.length <= 253 && prefixPart.test(prefix));
}
