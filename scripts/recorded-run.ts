/**
 * Runs the bundle as its own loader does, and when it has ended writes the code that V8 compiled meanwhile.
 *
 *   node scripts/recorded-run.ts FILE [FLAGS OF THE SIDECAR]
 */
import { writeFile } from 'node:fs/promises';
import { BundledProgram, compiledCodeFile } from '../src/base/bundled-program.ts';

const [file = ''] = process.argv.splice(2, 1);
const program = new BundledProgram(file);
const { main } = program.run() as { main: () => Promise<void> };
await main();
await writeFile(compiledCodeFile(file), program.compiledCode());
