import type { StringMap } from './csi-messages.ts';

/** What the checks are made with. */
export interface BenchOptions {
  readonly socketPath: string;
  /** How long a call may take, in milliseconds. */
  readonly timeoutMs: number;
  /** Parameters of the StorageClass. */
  readonly classParameters: StringMap;
  /** Go with every call that takes secrets. */
  readonly secrets: StringMap;
  /** Size of a volume, in bytes. */
  readonly sizeBytes: bigint;
  /** For ControllerModifyVolume; empty: only what must fail is tried. */
  readonly mutableParameters: StringMap;
  /** Segments of further nodes that the driver serves. */
  readonly nodes: readonly { readonly name: string; readonly segments: StringMap }[];
}
