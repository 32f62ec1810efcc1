/**
 * SIGUSR1 does nothing, as in the Go programs. Node.js would open its debugger on a port of the Pod, through which every process in
 * the Pod could read memory, and so Secrets. The images start Node.js with `--disable-sigusr1`; this file stands in front of each
 * bundle, for whoever runs it in another way, so it imports nothing. `--inspect` still works.
 */
process.on('SIGUSR1', () => undefined);
