import { fileURLToPath } from 'node:url';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

/** How messages look in JavaScript: field names as written, int64 as decimal text, enums by name, nothing made up. */
export const messageForm = { keepCase: true, longs: String, enums: String, defaults: false } as const;

let services: Record<string, ServiceDefinition> | undefined;

/**
 * The services of `proto/csi.proto` by their full names, such as `csi.v1.Node`. The bundler replaces this module by one
 * that brings the file's content along. The file is read once per process.
 *
 * @throws when the proto file is missing.
 */
export function csiServices(): Record<string, ServiceDefinition> {
  const file = fileURLToPath(new URL('../proto/csi.proto', import.meta.url));
  services ??= loadSync(file, messageForm) as Record<string, ServiceDefinition>;
  return services;
}
