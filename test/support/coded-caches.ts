import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { attachmentInformer } from '../../src/csi/attachments.ts';
import { nodeInformers } from '../../src/csi/topology/topology-nodes.ts';
import { Informer } from '../../src/kube/cache/informer.ts';
import type { KubeObject } from '../../src/kube/kube-object.ts';
import { messageDecoder } from '../../src/kube/protobuf/message-decoder.ts';
import { provisionInformers, withoutManagedFields } from '../../src/provision/cache/informers.ts';
import { noReflectorMetrics } from './no-metrics.ts';
import { codedDriver, type CodedKind } from './coded-objects.ts';
import type { CodingTransport } from './fakes/coding-transport.ts';

/** Informers of all kinds over one transport, which runs them until it is disposed. */
export class CodedCaches implements AsyncDisposable {
  readonly transport: CodingTransport;
  readonly #informers: readonly Informer<KubeObject>[];
  readonly #end = new AbortController();
  readonly #running: Promise<void>[];

  private constructor(transport: CodingTransport, informers: readonly Informer<KubeObject>[]) {
    this.transport = transport;
    this.#informers = informers;
    this.#running = informers.map((informer) => informer.run(this.#end.signal));
  }

  /** What the sidecar caches. */
  static ofSidecar(transport: CodingTransport): CodedCaches {
    const common = { transport, clock: systemClock, logger: silentLogger };
    const { claims, volumes, classes } = provisionInformers({
      ...common,
      isKnownProvisioner: (name) => name === codedDriver,
    });
    const { nodes, csiNodes } = nodeInformers({ ...common, driverName: codedDriver, metrics: noReflectorMetrics });
    const attachments = attachmentInformer({ ...common, metrics: noReflectorMetrics });
    const provision = [claims, volumes, classes] as readonly unknown[] as Informer<KubeObject>[]; // each has its own type
    const others = [nodes, csiNodes, attachments] as readonly unknown[] as Informer<KubeObject>[];
    return new CodedCaches(transport, [...provision, ...others]);
  }

  /** All that the messages have of the objects. */
  static ofWholeObjects(transport: CodingTransport, kinds: readonly CodedKind[]): CodedCaches {
    const informers = kinds.map(({ resource, message, unread = [] }) => {
      const transform = (object: KubeObject): KubeObject => {
        const whole = Object.entries(withoutManagedFields<KubeObject>(object));
        return Object.fromEntries(whole.filter(([name]) => !unread.includes(name))) as unknown as KubeObject;
      };
      const common = { transport, clock: systemClock, logger: silentLogger };
      return new Informer({ ...common, resource, transform, protobuf: messageDecoder(message) });
    });
    return new CodedCaches(transport, informers);
  }

  /** What is cached of a kind, by name, of the objects that the kind lists; what only watches name is left out. */
  content({ resource, objects }: CodedKind): Record<string, object> {
    const names = new Set(objects.map(({ object }) => object.metadata.name));
    const informer = this.#informers.find((each) => each.resource.plural === resource.plural);
    const content: Record<string, object> = {};
    for (const { apiVersion: _version, kind: _kind, ...object } of informer?.list() ?? []) {
      if (names.has(object.metadata.name)) content[object.metadata.name] = object;
    }
    return content;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error('the test is over'));
    await Promise.all(this.#running);
    await this.transport[Symbol.asyncDispose]();
  }
}
