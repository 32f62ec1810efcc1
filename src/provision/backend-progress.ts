/**
 * How much a backend has read of what it was sent. A backend that stalls, such as a frozen process, may begin a request only when it
 * resumes, even if the request was given up long before.
 */
export interface BackendProgress {
  /** Whether a request that may create storage was given up, and may not have been read yet. */
  readonly isBehind: boolean;
  /**
   * Calls the listener whenever the backend has read more, until the result is disposed. The listener is given a monotonic time in
   * milliseconds, or `Infinity`: every request that was given up before this time has been read, or never will be. The listener must not throw.
   */
  onProgress(listener: (untilMs: number) => void): Disposable;
}
