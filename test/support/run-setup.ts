/**
 * The global setup of test runs; what it sets in the environment, the processes of the test files and those that they start
 * inherit.
 */
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export function globalSetup(): void {
  // Halves the CPU that a start from sources takes. Where nothing can be written, Node.js goes on without;
  // NODE_DISABLE_COMPILE_CACHE=1 disables it, for instance to measure coverage.
  process.env['NODE_COMPILE_CACHE'] ??= path.join(import.meta.dirname, '../../.cache/node');
  keepTemporaryFilesTogether();
}

/** One folder for the run, which goes at its end however that comes about. What tests that pass leave in it fails the run. */
function keepTemporaryFilesTogether(): void {
  const folder = mkdtempSync(path.join(tmpdir(), 'test-'));
  chmodSync(folder, 0o755); // some tests look from another user's account
  process.env['TMPDIR'] = folder;
  process.on('exit', (code) => {
    const remains = readdirSync(folder);
    if (code === 0 && remains.length > 0) {
      console.error(`tests have left behind: ${remains.join(', ')}`);
      process.exitCode = 1;
    }
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
}
