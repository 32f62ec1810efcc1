/** Ends a process on a Node.js that is too old, with one line and exit code 1. Also the first statement of the bundle. */
import { nodeVersionProblem } from './base/node-version.ts';

const problem = nodeVersionProblem(process.versions.node);
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(1);
}
