/* global process, console */
/* eslint no-console: off */
// Plain JavaScript of old, so that an old Node.js can read it and is refused in one line. Also the first statement of the
// bundle.
if (Number(process.versions.node.split('.')[0]) < 24) {
  console.error('csi-sandbox needs Node.js 24 or newer; ' + process.execPath + ' is ' + process.version);
  process.exit(1);
}
