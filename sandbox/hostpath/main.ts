/** Process edge of the sample hostpath CSI driver: flags in, one line on standard output, exit code out. */
import { startDriver } from './driver.ts';
import { FlagError, parseFlags, usage } from './flags.ts';

async function main(): Promise<number> {
  const options = parseFlags(process.argv.slice(2));
  if (options === 'help') {
    process.stdout.write(usage);
    return 0;
  }
  const stopped = new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, resolve);
  });
  const driver = await startDriver(options);
  const ready = { address: driver.address, driver: options.driverName, pid: process.pid };
  process.stdout.write(JSON.stringify(ready) + '\n');
  await stopped;
  await driver.close();
  return 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`hostpath driver: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = error instanceof FlagError ? 2 : 1;
}
