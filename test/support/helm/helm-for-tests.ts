import { findHelm } from './helm.ts';

/** The Helm of the tests, or why they are skipped. */
export type HelmForTests = { program: string; skip: false } | { program: ''; skip: string };

/** Looks for Helm, and compiles it where there is Go. That there is none is said on standard error, loudly. */
export async function helmForTests(): Promise<HelmForTests> {
  const program = await findHelm();
  if (program !== undefined) return { program, skip: false };
  const skip = 'there is neither Go nor a Helm; see test/support/helm/build.sh';
  console.error(`\n*** THE CHARTS ARE NOT TESTED: ${skip} ***\n`);
  return { program: '', skip };
}

/** As `helmForTests`, for tests that need a real API server as well. */
export async function helmOnKubernetes(env: NodeJS.ProcessEnv = process.env): Promise<HelmForTests> {
  if (env['E2E_TARGET'] === 'kubernetes') return await helmForTests();
  return { program: '', skip: 'needs the real control plane' };
}
