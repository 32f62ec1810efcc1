/**
 * Where the bundle starts: a small file that loads the program beside it. On the way V8 gets the flags that keep memory
 * small. They are set here rather than on the command line, since V8 refuses code that was compiled under other flags:
 * that of the program, and that of its own modules which Node.js brings along.
 */
import { createRequire } from 'node:module';
import path from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { BundledProgram } from './base/bundled-program.ts';

/**
 * The heap may double between two collections. An idle process is collected once instead of twice: the second collection
 * moves so many objects that it blocks the event loop for 74 ms with 200,000 pairs. And undici's HTTP parser is not
 * compiled a second time for speed: that takes a tenth of a second and 23 MB, of which a good part is kept, and makes no
 * difference here.
 */
const memoryFlags = [
  '--heap-growing-percent=100',
  '--memory-reducer-gc-count=1',
  '--no-wasm-tier-up',
  '--no-wasm-dynamic-tiering',
];

/** The name of a V8 flag, however it is written. */
function nameOf(flag: string): string {
  return flag.replace(/^--(no-)?|=.*$/g, '').replaceAll('_', '-');
}

// `import.meta.dirname` is empty in the root folder, where the image has it
const file = path.join(path.dirname(import.meta.filename), 'csi-provisioner.bundle.cjs');
// Node.js applies source maps to the modules that it loads itself.
const load = process.sourceMapsEnabled ? createRequire(file) : (name: string) => new BundledProgram(name).run();
const { main } = load(file) as { main: () => Promise<void> };
const given = process.execArgv.map(nameOf);
for (const flag of memoryFlags) if (!given.includes(nameOf(flag))) setFlagsFromString(flag);
await main();
