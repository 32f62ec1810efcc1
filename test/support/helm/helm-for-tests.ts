import { after, describe } from 'node:test';
import { findHelm, findOrCompileHelm, Helm, type HelmMajor } from './helm.ts';

/** A Helm of the tests, or why they are skipped. */
export type HelmForTests =
  { title: string; program: string; skip: false } | { title: string; program: ''; skip: string };

const needsKubernetes = 'needs the real control plane';

/**
 * The Helms that the charts are tested with: that of `HELM`, or the major version that `HELM_MAJOR` names, else both, where they are
 * compiled. That there is no Helm at all is said on standard error, loudly.
 */
export async function helmsForTests(env: NodeJS.ProcessEnv = process.env): Promise<HelmForTests[]> {
  const first = await helmForTests(env);
  if (env['HELM'] || majorOf(env) !== undefined) return [first];
  return [first, await builtHelm(4, env)];
}

/** Defines the same tests for each Helm. @param skip - a reason of their own. */
export function describeWithHelms(
  helms: readonly HelmForTests[],
  name: string,
  define: (helm: Helm) => void,
  { skip: reason = false }: { skip?: string | false } = {},
): void {
  for (const { title, program, skip } of helms) {
    describe(`${name} with ${title}`, { skip: skip || reason }, () => {
      const helm = new Helm(program);
      after(() => helm[Symbol.asyncDispose]());
      define(helm);
    });
  }
}

/**
 * That of `HELM`, or the major version that `HELM_MAJOR` names, 3 without both. It is compiled, in minutes, only for who asks for
 * that version, or for the real control plane, which is compiled as well.
 */
async function helmForTests(env: NodeJS.ProcessEnv): Promise<HelmForTests> {
  const asked = majorOf(env);
  const major = asked ?? 3;
  const title = env['HELM'] ? 'the Helm of HELM' : `Helm ${major}`;
  const mayCompile = asked !== undefined || isOnKubernetes(env);
  const program = await (mayCompile ? findOrCompileHelm : findHelm)(major, env);
  if (program !== undefined) return { title, program, skip: false };
  const skip = `${title} is not there: test/support/helm/build.sh ${major} compiles it, with Go`;
  console.error(`\n*** THE CHARTS ARE NOT TESTED: ${skip} ***\n`);
  return { title, program: '', skip };
}

/** A compiled one: what takes minutes is not begun for it. */
async function builtHelm(major: HelmMajor, env: NodeJS.ProcessEnv): Promise<HelmForTests> {
  const title = `Helm ${major}`;
  const program = await findHelm(major, env);
  if (program !== undefined) return { title, program, skip: false };
  return {
    title,
    program: '',
    skip: `${title} is not there: test/support/helm/build.sh ${major} compiles it, with Go`,
  };
}

function majorOf(env: NodeJS.ProcessEnv): HelmMajor | undefined {
  const given = env['HELM_MAJOR'];
  if (!given) return undefined;
  if (given === '3' || given === '4') return Number(given) as HelmMajor;
  throw new Error(`HELM_MAJOR=${given} is neither 3 nor 4`);
}

/** One Helm for tests that need a real API server as well. */
export async function helmOnKubernetes(env: NodeJS.ProcessEnv = process.env): Promise<HelmForTests> {
  return isOnKubernetes(env) ? await helmForTests(env) : { title: 'Helm', program: '', skip: needsKubernetes };
}

/** Both, for tests in which one goes on where the other began. */
export async function bothHelmsOnKubernetes(
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ helm3: string; helm4: string; skip: false } | { helm3: ''; helm4: ''; skip: string }> {
  const none = { helm3: '', helm4: '' } as const;
  if (!isOnKubernetes(env)) return { ...none, skip: needsKubernetes };
  if (env['HELM']) return { ...none, skip: 'HELM names one Helm, and this needs two' };
  const [helm3, helm4] = [await builtHelm(3, env), await builtHelm(4, env)];
  if (helm3.skip !== false) return { ...none, skip: helm3.skip };
  if (helm4.skip !== false) return { ...none, skip: helm4.skip };
  return { helm3: helm3.program, helm4: helm4.program, skip: false };
}

function isOnKubernetes(env: NodeJS.ProcessEnv): boolean {
  return env['E2E_TARGET'] === 'kubernetes';
}
