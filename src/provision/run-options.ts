/** How long a run lasts. */
export interface RunOptions {
  /** Take no new work; what is under way is finished. */
  stop: AbortSignal;
  /** Take no new work, and abandon what is under way, too: such as a leader election's `lost`. Default: never. */
  abort?: AbortSignal;
}
