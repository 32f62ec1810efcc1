/** Holds the event loop, in milliseconds. */
export function hold(ms: number): void {
  for (const endMs = performance.now() + ms; performance.now() < endMs;);
}

/** How often the event loop came round while the work went on. */
export async function iterationsDuring(running: Promise<unknown>): Promise<number> {
  let iterations = 0;
  let next = setImmediate(function count() {
    iterations++;
    next = setImmediate(count);
  });
  await running;
  clearImmediate(next);
  return iterations;
}
