/** What objects may be called (Kubernetes page "Object Names and IDs"). */
const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const labelPattern = new RegExp(`^${label}$`);
const subdomainPattern = new RegExp(`^${label}(\\.${label})*$`);

/** RFC 1123 label: what a namespace may be called. */
export function isLabelName(text: string): boolean {
  return text.length <= 63 && labelPattern.test(text);
}

/** RFC 1123 subdomain: what most objects may be called, such as a Secret or a ServiceAccount. */
export function isSubdomainName(text: string): boolean {
  return text.length <= 253 && subdomainPattern.test(text);
}
