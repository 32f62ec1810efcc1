/** The parameters of a class, checked and typed, and the class of a volume. */
import { parseGoBool } from '../base/go-bool.ts';
import { quantityBytes } from '../base/quantity.ts';
import { shortValue } from '../base/short-value.ts';
import { NotFoundError } from '../kube/client/api-error.ts';
import type { CallOptions, KubeClient } from '../kube/client/kube-client.ts';
import { betaStorageClassKey, type PersistentVolume, type StorageClass, storageClasses } from './objects.ts';

/** A parameter of a class that cannot be used. Thrown by `provision` it becomes an event on the claim. */
export class ParameterError extends Error {
  override readonly name = 'ParameterError';
}

/** Which parameters are known, and how their keys are compared. */
export interface ReadParametersOptions {
  /** The known keys. */
  keys: readonly string[];
  /** Whether keys are case-insensitive. Default false. */
  ignoreCase?: boolean;
  /** Refuse unknown keys, so that no typing error goes unnoticed. Default true. */
  strict?: boolean;
}

/** The parameters of one class, by known key. An absent one is undefined; what is there is checked when it is read. */
export interface ClassParameters {
  text(key: string): string | undefined;
  /** As Go reads it: `true`, `t`, `1`, `false`, `f`, `0` and the like. @throws {ParameterError} for any other text. */
  boolean(key: string): boolean | undefined;
  /** A Kubernetes quantity such as `5Gi`, in bytes, rounded up. @throws {ParameterError} for any other text. */
  bytes(key: string): bigint | undefined;
}

/**
 * Reads the parameters of a class.
 *
 * @throws {ParameterError} `invalid parameter: "KEY"` for an unknown key where that is strict, and where two spellings of one
 * key are given.
 * @throws {TypeError} by the methods of the result, for a key that is not among the known ones.
 */
export function readParameters(
  { parameters = {} }: Pick<StorageClass, 'parameters'>,
  { keys, ignoreCase = false, strict = true }: ReadParametersOptions,
): ClassParameters {
  const form = (key: string): string => (ignoreCase ? key.toLowerCase() : key);
  const known = new Set(keys.map(form));
  const given = new Map<string, { key: string; value: string }>();
  for (const [key, value] of Object.entries(parameters)) {
    const earlier = given.get(form(key));
    if (!known.has(form(key))) {
      if (strict) throw new ParameterError(`invalid parameter: ${JSON.stringify(shortValue(key))}`);
    } else if (earlier !== undefined) {
      const both = [earlier.key, key].map((each) => JSON.stringify(shortValue(each))).join(' and ');
      throw new ParameterError(`the parameters ${both} differ only in case: leave one out`);
    } else given.set(form(key), { key, value });
  }
  const parsed = <T>(key: string, parse: (value: string) => T): T | undefined => {
    if (!known.has(form(key)))
      throw new TypeError(`${JSON.stringify(shortValue(key))} is not among the known parameters`);
    const found = given.get(form(key));
    if (found === undefined) return undefined;
    try {
      return parse(found.value);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new ParameterError(`invalid value for parameter ${shortValue(found.key)}: ${why}`, { cause: error });
    }
  };
  return {
    text: (key) => parsed(key, (value) => value),
    boolean: (key) => parsed(key, parseGoBool),
    bytes: (key) => parsed(key, quantityBytes),
  };
}

/**
 * The current class of a volume, read from the API server: for what `delete` decides by the class. It may have been recreated
 * with other parameters since the volume was created.
 *
 * @throws {Error} when the volume names no class, or one that does not exist any more: then its parameters are
 * unknown, and nothing should be deleted.
 * @throws {ApiError} and {TransportError} when the class cannot be read.
 */
export async function classOfVolume(
  client: KubeClient,
  { metadata, spec }: Pick<PersistentVolume, 'metadata' | 'spec'>,
  options: CallOptions = {},
): Promise<StorageClass> {
  const name = metadata.annotations?.[betaStorageClassKey] ?? spec.storageClassName ?? '';
  if (name === '') throw new Error('volume has no storage class');
  try {
    return await client.get<StorageClass>(storageClasses, { name }, options);
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    const message = `StorageClass ${JSON.stringify(shortValue(name))} does not exist any more, and it decides what happens to the storage: recreate it`;
    throw new Error(`${message} (${error.message})`, { cause: error });
  }
}
