/**
 * How long a test waits for a condition before it fails, in milliseconds. Only tests that fail take that long: it guards against
 * a wait without end, and is no statement about speed. Shorter than `--test-timeout`, so that the wait names what it waited for.
 */
export const patienceMs = 120_000;
