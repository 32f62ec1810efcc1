import type { Logger } from '../../src/base/logger.ts';
import type { SandboxClient } from '../api/client.ts';

/**
 * The client with subscriptions that cannot take the process down: what a handler throws over one odd object is
 * logged, and the next change is delivered.
 */
export function guardHandlers(client: SandboxClient, logger: Logger): SandboxClient {
  return {
    get: (resource, name) => client.get(resource, name),
    list: (resource, options) => client.list(resource, options),
    create: (resource, object) => client.create(resource, object),
    update: (resource, object) => client.update(resource, object),
    updateStatus: (resource, object) => client.updateStatus(resource, object),
    delete: (resource, name, options) => client.delete(resource, name, options),
    bindPod: (pod, node) => client.bindPod(pod, node),
    finalizeNamespace: (name) => client.finalizeNamespace(name),
    recordEvent: (...event) => client.recordEvent(...event),
    subscribe: (resource, handler) =>
      client.subscribe(resource, (event) => {
        try {
          handler(event);
        } catch (error) {
          const { namespace, name } = event.object.metadata;
          logger.error({ resource: resource.plural, namespace, name, err: error }, 'change could not be handled');
        }
      }),
  };
}
