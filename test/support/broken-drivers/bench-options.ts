import type { BenchOptions } from '../../../sandbox/check/bench-options.ts';

/** How a driver is checked where nothing else is asked for. */
export function benchOptions(socketPath: string): BenchOptions {
  return {
    socketPath,
    timeoutMs: 20_000,
    classParameters: {},
    mutableParameters: {},
    secrets: {},
    nodes: [],
    sizeBytes: 2n ** 30n,
  };
}
