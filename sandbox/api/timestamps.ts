/** RFC 3339 in UTC with whole seconds, the form of `metav1.Time`. */
export function timestamp(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
}

/** RFC 3339 in UTC with six fractional digits, the form of `metav1.MicroTime`. */
export function microTimestamp(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 23)}000Z`;
}
