import { execFile } from 'node:child_process';
import { sidecarCommand } from '../../test/support/sidecar-process.ts';
import { count } from './count.ts';
import { readOutcome, type Setting } from './settle.ts';

/** What `csi-provisioner audit` has made of the records that a run left. */
export interface Audited {
  /** Ids that it reported as leaked. */
  leaked: number;
  /** Those of them that it deleted. */
  deleted: number;
  /** What it said of the others. */
  refusals: string[];
  /** Storage that somebody uses or keeps, and that is gone now. */
  destroyed: string[];
}

interface Report {
  findings: { state: string; volumeId?: string }[];
  deletions: { volumeId: string; result: string; detail: string }[];
}

/** Secrets of namespaces that were deleted: all of a run are equal. */
const secretName = 'credentials';

/** Has audit delete everything that it reports as leaked, as an operator would, one id after the other. */
export async function audited(setting: Setting): Promise<Audited> {
  const { findings } = await audit(setting, '--second-look=1s');
  const ids = new Set(findings.flatMap(({ state, volumeId }) => (state === 'leaked' ? [volumeId ?? ''] : [])));
  ids.delete('');
  const namespace = setting.load.namespace();
  let deleted = 0;
  const refusals: string[] = [];
  for (const id of ids) {
    const secret = ['--secret', `${namespace}/${secretName}`];
    const flags = ['--second-look=0', '--delete', id, '--yes'];
    let refusal = await refusalOf(setting, flags);
    if (refusal?.includes(secretName) === true) refusal = await refusalOf(setting, [...flags, ...secret]);
    if (refusal === undefined) deleted++;
    else refusals.push(`${id}: ${refusal}`);
  }
  const { destroyed } = count((await readOutcome(setting)).outcome);
  return { leaked: ids.size, deleted, refusals, destroyed };
}

/** @returns why a volume was not deleted; undefined: it was. */
async function refusalOf(setting: Setting, flags: readonly string[]): Promise<string | undefined> {
  try {
    const { deletions } = await audit(setting, ...flags);
    return deletions.find(({ result }) => result !== 'deleted')?.detail;
  } catch (error) {
    return (error as Error).message.trim();
  }
}

/** @throws when it prints no report. */
async function audit({ driver, world, options }: Setting, ...flags: string[]): Promise<Report> {
  const [command = '', ...words] = sidecarCommand();
  const journal = options.journal === undefined ? [] : [`--intent-journal=${options.journal}`];
  const connection = [`--csi-address=${driver.address}`, `--kubeconfig=${world.kubeconfig}`];
  const env = { ...process.env, KUBECONFIG: undefined, POD_NAMESPACE: world.cluster.sidecarNamespace };
  const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve) => {
    execFile(
      command,
      [...words, 'audit', ...connection, ...journal, '-o', 'json', ...flags],
      { env, maxBuffer: 2 ** 28 },
      (_error, out, problems) => resolve({ stdout: out, stderr: problems }), // its exit code says what it found
    );
  });
  if (stdout === '') throw new Error(`audit printed nothing: ${stderr}`);
  return JSON.parse(stdout) as Report;
}
