/** Where images of this project have Node.js and the program, as their entry point names them. */
export const programInImage = ['/nodejs/bin/node', '/csi-provisioner.mjs'] as const;
