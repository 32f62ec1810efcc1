/**
 * Ends the process once nothing is left to do, with the exit code that was set. Node.js would free all that it holds first, and can
 * stay in that for ever with a core in full use: seen once in Node.js 24.21, where a sandbox with many connections ended
 * (`Environment::CleanupHandles`). This file stands in front of each bundle, so it imports nothing.
 */
process.once('beforeExit', () => process.exit());

export {};
