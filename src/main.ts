/**
 * Where the program starts: nothing that an older Node.js could stumble over is loaded before its version is known, so
 * no other static imports here.
 */
import './check-node.ts';

const { main } = await import('./cli/main.ts');
await main();
