/** The process edge of the sandbox: flags in, one line of JSON out when ready, exit code. */
import '../src/base/end-when-done.ts';
import type { AccessRequest } from './api/authorization.ts';
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
    await using sandbox = await Sandbox.start({ ...flags.options, onForbidden: printOnce() });
    const { url, kubeconfig, accountKubeconfig } = sandbox;
    print({ url, kubeconfig, pid: process.pid, accountKubeconfig });
    await stopped.promise;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}

function print(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** A program repeats what it was refused. */
function printOnce(): (request: AccessRequest) => void {
  const printed = new Set<string>();
  return ({ verb, group, resource, subresource, namespace }) => {
    const full = subresource === '' ? resource : `${resource}/${subresource}`;
    const right = { verb, group, resource: full, ...(namespace !== '' && { namespace }) };
    const key = JSON.stringify(right);
    if (!printed.has(key)) print({ forbidden: right });
    printed.add(key);
  };
}
