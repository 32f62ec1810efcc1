/** Waits for a promise that others resolve; an abort rejects it for everybody. */
export async function settled<T>({ promise, reject }: PromiseWithResolvers<T>, signal: AbortSignal): Promise<T> {
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
