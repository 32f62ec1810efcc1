/** What the commands of chaos runs have in common. */

/** Runs a command; its exit code is what `run` returns, 1 when that fails, and 2 for flags that cannot be run. */
export async function runCommand<T extends object>(
  name: string,
  {
    usage,
    parse,
    run,
  }: { usage: string; parse: (argv: readonly string[]) => T | 'help'; run: (options: T) => Promise<number> },
): Promise<void> {
  let options;
  try {
    options = parse(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message.replace(/\.$/, '')}. See ${name} --help`);
    process.exitCode = 2;
    return;
  }
  if (options === 'help') {
    process.stdout.write(usage);
    return;
  }
  try {
    process.exitCode = await run(options);
  } catch (error) {
    console.error(error instanceof Error ? (error.stack ?? error.message) : String(error));
    process.exitCode = 1;
  }
}

export function oneOf<T extends string>(flag: string, text: string, accepted: readonly T[]): T {
  const found = accepted.find((each) => each === text);
  if (found === undefined) throw new Error(`${flag}: ${JSON.stringify(text)} is not one of ${accepted.join(', ')}`);
  return found;
}

export function wholeNumber(flag: string, text: string, least = 1): number {
  if (/^\d{1,9}$/.test(text) && Number(text) >= least) return Number(text);
  throw new Error(`${flag}: ${JSON.stringify(text)} is no whole number of at least ${least}`);
}

/** Lines of a help text. */
export function described(names: Readonly<Record<string, string>>): string {
  return Object.entries(names)
    .map(([name, what]) => `  ${name.padEnd(20)} ${what}\n`)
    .join('');
}

export function secondsText(ms: number): string {
  return `${(ms / 1000).toFixed(0)} s`;
}
