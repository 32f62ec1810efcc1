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

/** Calls `each` for all items, at most four at a time. @throws its first failure; the others go on. */
export async function inParallel<T>(items: readonly T[], each: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const worker = async (): Promise<void> => {
    for (const item of left) await each(item);
  };
  await Promise.all(Array.from({ length: 4 }, worker));
}
