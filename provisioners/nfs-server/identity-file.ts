import { randomUUID } from 'node:crypto';
import { AtomicFile } from './atomic-file.ts';

/**
 * Who we are: a UUID beside the volumes, made at the first start. Volumes name it, so that of several provisioners with
 * one name only the one that has the data deletes it. It is lost together with the data.
 */
export interface Identity {
  readonly id: string;
  readonly file: string;
  /** Writes a new identity into the file, unless it is there: to be awaited before a volume gets it. Safe to repeat. */
  keep(): Promise<void>;
}

/** Reads the file, or generates an identity, which is not written yet. */
export async function ownIdentity(file: string): Promise<Identity> {
  const known = await knownIdentity(file);
  if (known !== undefined) return { id: known, file, keep: () => Promise.resolve() };
  const id = randomUUID();
  let kept: Promise<void> | undefined;
  const write = async (): Promise<void> => {
    try {
      await new AtomicFile(file).write(id);
    } catch (error) {
      kept = undefined; // the next call tries again
      throw error;
    }
  };
  return { id, file, keep: () => (kept ??= write()) };
}

/** The identity that the file has; undefined where there is none. */
export async function knownIdentity(file: string): Promise<string | undefined> {
  const text = (await new AtomicFile(file).read())?.trim() ?? '';
  return text === '' ? undefined : text;
}
