/** The configuration cannot be used; the message names the file, the variable or the field. */
export class KubeConfigError extends Error {
  override readonly name = 'KubeConfigError';
}
