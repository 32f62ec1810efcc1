/** The process edge of the sandbox: flags in, one line of JSON out when ready, exit code. */
import { Sandbox } from './sandbox.ts';
import { parseSandboxFlags, sandboxUsage } from './sandbox-flags.ts';

const flags = parseSandboxFlags(process.argv.slice(2));
if (flags.kind === 'help') process.stdout.write(sandboxUsage);
else if (flags.kind === 'error') {
  process.stderr.write(`${flags.message}\n`);
  process.exitCode = 2;
} else {
  const stopped = Promise.withResolvers<undefined>();
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stopped.resolve(undefined));
  try {
    await using sandbox = await Sandbox.start(flags.options);
    process.stdout.write(`${JSON.stringify({ url: sandbox.url, kubeconfig: sandbox.kubeconfig, pid: process.pid })}\n`);
    await stopped.promise;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
