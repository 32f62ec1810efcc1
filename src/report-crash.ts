/**
 * Reports an error that nobody caught, and ends the process with exit code 1, as Node.js does; but without the line of the program
 * that Node.js quotes before it: in a bundle that line is a great part of the program. Stands in front of each bundle, so no
 * imports here.
 */
process.on('uncaughtException', (error: unknown) => {
  const { inspect } = process.getBuiltinModule('node:util');
  process.stderr.write(`${inspect(error)}\n\nNode.js ${process.version}\n`);
  process.exit(1);
});
