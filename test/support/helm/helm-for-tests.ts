import { findHelm } from './helm.ts';

/** The Helm of the tests, or a reason to skip them, which standard error says loudly. */
export async function helmForTests(): Promise<{ program: string; skip: false } | { program: ''; skip: string }> {
  const program = await findHelm();
  if (program !== undefined) return { program, skip: false };
  const skip = 'there is neither Go nor a Helm; see test/support/helm/build.sh';
  console.error(`\n*** THE CHARTS ARE NOT TESTED: ${skip} ***\n`);
  return { program: '', skip };
}
