import { randomUUID } from 'node:crypto';
import { AtomicFile } from './atomic-file.ts';

/**
 * Who we are: a UUID beside the volumes, made at the first start. Volumes name it, so that of several provisioners with
 * one name only the one that has the data deletes it. It is lost together with the data.
 */
export async function ownIdentity(file: string): Promise<string> {
  const identityFile = new AtomicFile(file);
  const known = (await identityFile.read())?.trim() ?? '';
  if (known !== '') return known;
  const identity = randomUUID();
  await identityFile.write(identity);
  return identity;
}
