/**
 * Ends the process once nothing is left to do, with the exit code that was set. Otherwise Node.js first frees everything that
 * it holds, and may hang there with one core at 100 % (seen once in 24.21, in `Environment::CleanupHandles`, where a sandbox
 * with many connections ended). This file is prepended to each bundle, so it must not import anything.
 */
process.once('beforeExit', () => process.exit());

export {};
