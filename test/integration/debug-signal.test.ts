/** SIGUSR1 must not open a debugger: through it every process in the Pod could read memory. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { runNode } from './cli/program-run.ts';

const root = path.join(import.meta.dirname, '../..');
const ignoring = path.join(root, 'src/ignore-debug-signal.ts');

describe('SIGUSR1', () => {
  /** Ends once the signal has arrived. */
  const script = `
    import inspector from 'node:inspector';
    const waiting = setInterval(() => {}, 1000);
    if (process.listenerCount('SIGUSR1') === 0) throw new Error('nothing handles the signal');
    process.on('SIGUSR1', () => {
      console.log('debugger: ' + inspector.url());
      clearInterval(waiting);
    });
    process.kill(process.pid, 'SIGUSR1');`;

  test('does nothing in a bundle, however it is run', async () => {
    const { code, stdout, stderr } = await runNode(['--import', ignoring, '--input-type=module', '--eval', script]);
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: 'debugger: undefined\n', stderr: '' });
  });

  test('is left to nobody by the images', async () => {
    const dockerfile = await readFile(path.join(root, 'Dockerfile'), 'utf8');
    const entryPoints = [...dockerfile.matchAll(/^ENTRYPOINT (.*)$/gm)].map(
      ([, list = '']) => JSON.parse(list) as string[],
    );
    assert.equal(entryPoints.length, 4);
    for (const entryPoint of entryPoints) assert.equal(entryPoint[1], '--disable-sigusr1', entryPoint.join(' '));
  });
});
