/**
 * SIGUSR1 does nothing, as in the Go programs. Node.js would open its debugger on a port of the Pod, through which every process in
 * the Pod could read memory, and so Secrets. The images start Node.js with `--disable-sigusr1`; this file is prepended to each
 * bundle, in case it is run in another way, so it imports nothing. `--inspect` still works.
 */
process.on('SIGUSR1', () => undefined);
