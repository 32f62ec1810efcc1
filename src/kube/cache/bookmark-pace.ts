/** Min silence after which a watch counts as dead, in milliseconds: servers send a bookmark each minute. */
const minSilenceMs = 75_000;
/** A bookmark may be later than the max gap that was seen by this factor. */
const leeway = 1.25;
/** After this many silent watches, and never a bookmark, the server counts as one that sends none. */
const maxSilentWatches = 2;

/** How many of the last gaps between bookmarks count: one may have been long because this process was paused. */
const maxGaps = 3;

/** How often a server sends bookmarks in the watches of one resource, and so how long a silence means that a connection is dead. */
export class BookmarkPace {
  readonly #gapsMs: number[] = [];
  #silentWatches = 0;

  /** Milliseconds without a byte after which a watch is dead; undefined while silence means nothing. */
  get maxSilenceMs(): number | undefined {
    if (this.#gapsMs.length === 0 && this.#silentWatches >= maxSilentWatches) return undefined;
    return Math.max(minSilenceMs, leeway * Math.max(0, ...this.#gapsMs));
  }

  /** A bookmark came, this long after the one before it or the start of the watch, in milliseconds. */
  sawBookmark(gapMs: number): void {
    this.#gapsMs.push(gapMs);
    if (this.#gapsMs.length > maxGaps) this.#gapsMs.shift();
  }

  /** A watch was ended because of its silence. */
  wasSilent(): void {
    this.#silentWatches += 1;
  }
}
