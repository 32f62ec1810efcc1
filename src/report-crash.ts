/**
 * Reports an uncaught error and ends the process with exit code 1, as Node.js does, but without quoting the line of code that threw
 * it: in a bundle that line can be a large part of the program. This file stands in front of each bundle, so it imports nothing.
 */
process.on('uncaughtException', (error: unknown) => {
  const { inspect } = process.getBuiltinModule('node:util');
  process.stderr.write(`${inspect(error)}\n\nNode.js ${process.version}\n`);
  process.exit(1);
});
