/** The value of the label `csi.storage.k8s.io/managed-by`. */

const base = 'external-provisioner';
/** Maximum length of a label's value (Kubernetes, "Labels and Selectors", syntax). */
const maxLabelLength = 63;

/**
 * Who manages the objects of this process, as a label's value: the same after every restart.
 *
 * @param nodeName - in node deployment the node's; undefined for one provisioner of the whole cluster. A name that does
 * not fit is shortened as little as possible, since users search for it.
 */
export function managedBy(nodeName: string | undefined): string {
  if (nodeName === undefined) return base;
  const whole = `${base}-${nodeName}`;
  if (whole.length <= maxLabelLength) return whole;
  const hash = fnv1a(base);
  const room = maxLabelLength - hash.length - 2 - nodeName.length;
  if (room <= 0) return `${base}-${fnv1a(whole)}`;
  return `${base.slice(0, room)}-${hash}-${nodeName}`;
}

/** FNV-1a of 32 bits over the UTF-8 bytes, as 8 hexadecimal digits. */
function fnv1a(text: string): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}
