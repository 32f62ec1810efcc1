/**
 * Imported by `npm test` before each test file: `node:test` then does not follow each promise from its origin to its end, which takes a
 * third of the CPU of tests that do much in their process. It did so to know which test a stray error belongs to; such an error now
 * fails the file, and is written here with its stack.
 */
import { getBuiltinModule } from 'node:process';

const hooks = getBuiltinModule('node:async_hooks');
const { createHook } = hooks;
hooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false });
getBuiltinModule('node:test'); // takes the function for the hook that it makes
hooks.createHook = createHook;

process.on('uncaughtExceptionMonitor', report);
process.on('unhandledRejection', (error) => {
  report(error);
  process.exitCode = 1;
});

function report(error: unknown): void {
  console.error('an error that no test awaits:', error);
}
