/** What `csi-provisioner why` says of everything that a failed test leaves undone. */
import { execFile } from 'node:child_process';
import type { SandboxClient, SandboxObject } from '../api/client.ts';
import { stringAt } from '../api/json.ts';
import { resources } from '../control-plane/objects.ts';
import { sidecarFile } from './programs.ts';

const timeoutMs = 20_000;
/** Whoever leaves more than that does not read them all. */
const maxExplained = 10;

/** Claims that are not bound and volumes that could not be deleted, as `why` names them. */
export function leftovers(client: SandboxClient): string[] {
  const claims = client.list(resources.claims).filter(isUnbound);
  const volumes = client.list(resources.volumes).filter(isToGo);
  return [
    ...claims.map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`),
    ...volumes.map(({ metadata }) => `pv/${metadata.name}`),
  ];
}

/** Explains the first of them. @returns a text for each, and how many there are beyond. Never rejects. */
export async function explanations(objects: readonly string[], kubeconfig: string): Promise<string[]> {
  const explained = await Promise.all(objects.slice(0, maxExplained).map((object) => why(object, kubeconfig)));
  const more = objects.length - explained.length;
  return more > 0 ? [...explained, `And ${more} more.`] : explained;
}

function isUnbound(claim: SandboxObject): boolean {
  return stringAt(claim, 'status', 'phase') !== 'Bound' || claim.metadata.deletionTimestamp !== undefined;
}

function isToGo(volume: SandboxObject): boolean {
  const isReleased = ['Released', 'Failed'].includes(stringAt(volume, 'status', 'phase'));
  const isDeleted = stringAt(volume, 'spec', 'persistentVolumeReclaimPolicy') === 'Delete';
  return volume.metadata.deletionTimestamp !== undefined || (isReleased && isDeleted);
}

function why(object: string, kubeconfig: string): Promise<string> {
  const args = [sidecarFile(), 'why', object, `--kubeconfig=${kubeconfig}`];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { timeout: timeoutMs }, (error, stdout, stderr) =>
      resolve(stdout || `${object}: ${stderr || (error?.message ?? 'no explanation')}`),
    );
  });
}
