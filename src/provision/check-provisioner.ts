/** Checks for programs in JavaScript, whose mistakes no type checker finds. */
import type { Provisioner } from './provisioner.ts';

/** @throws {TypeError} when it is not a text, or empty. */
export function checkProvisionerName(name: unknown): void {
  if (typeof name === 'string' && name !== '') return;
  throw new TypeError(
    `provisionerName must be the provisioner of your StorageClasses, such as "hostpath.example.com", got ${JSON.stringify(name)}`,
  );
}

/** @throws {TypeError} naming the method that is missing. */
export function checkProvisioner(provisioner: Partial<Provisioner> | undefined): void {
  for (const method of ['provision', 'delete'] as const) {
    if (typeof provisioner?.[method] !== 'function') throw new TypeError(`provisioner must have a method ${method}`);
  }
}
