import { writeSync } from 'node:fs';

const standardError = 2;

/** How long a full pipe is given before the next attempt, in milliseconds. */
const fullPipeWaitMs = 10;

/**
 * Writes to standard error and returns when all of it has been taken, so that no line is lost at an exit. Waits for a
 * slow reader, also when the pipe does not block. A reader that has gone away is ignored: logging must never end a
 * provisioner.
 */
export function writeStandardError(text: string): void {
  const bytes = Buffer.from(text);
  for (let written = 0; written < bytes.length;) {
    try {
      written += writeSync(standardError, bytes, written);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, fullPipeWaitMs);
    }
  }
}
