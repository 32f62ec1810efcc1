/**
 * Runs the bundle as its own loader does, and when it has ended writes where the functions are that were called.
 *
 *   node scripts/code-cache/recorded-run.ts OUTPUT FILE [FLAGS OF THE SIDECAR]
 */
import { writeFile } from 'node:fs/promises';
import { type Profiler, Session } from 'node:inspector/promises';
import { beforeProgram, BundledProgram } from '../../src/base/bundled-program.ts';
import type { FunctionRange } from './bundle-functions.ts';

const [output = '', file = ''] = process.argv.splice(2, 2);
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
const { main } = new BundledProgram(file).run() as { main: () => Promise<void> };
await main();
const { result } = await session.post('Profiler.takePreciseCoverage');
await writeFile(output, JSON.stringify(result.filter(({ url }) => url.endsWith(file)).flatMap(called)));

function called({ functions }: Profiler.ScriptCoverage): FunctionRange[] {
  return functions
    .flatMap(({ ranges }) => ranges.slice(0, 1))
    .filter(({ count }) => count > 0)
    .map(({ startOffset, endOffset }) => ({ start: inFile(startOffset), end: inFile(endOffset) }));
}

function inFile(offset: number): number {
  return offset - beforeProgram.length;
}
