/** The first import of the library: on a Node.js that is too old it says so before anything else is evaluated. */
import { nodeVersionProblem } from './node-version.ts';

const problem = nodeVersionProblem(process.versions.node);
if (problem !== undefined) throw new Error(problem);
