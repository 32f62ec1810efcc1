import { type KubeClient, type PersistentVolume, persistentVolumes } from '../index.ts';
import { eventually } from './eventually.ts';
import { orUndefined } from './test-claim.ts';

/** A PersistentVolume of a sandbox, which can be waited for. */
export class TestVolume {
  readonly name: string;
  readonly #client: KubeClient;
  readonly #patienceMs: number;

  /** @internal */
  constructor(name: string, { client, patienceMs }: { client: KubeClient; patienceMs: number }) {
    this.name = name;
    this.#client = client;
    this.#patienceMs = patienceMs;
  }

  /** As it is now; undefined when there is none. */
  async current(): Promise<PersistentVolume | undefined> {
    return await orUndefined(this.#client.get<PersistentVolume>(persistentVolumes, { name: this.name }));
  }

  /** Waits until there is none of this name. @throws when there still is one in time, with its phase. */
  async gone(options: { withinMs?: number; signal?: AbortSignal } = {}): Promise<void> {
    const { withinMs = this.#patienceMs, signal } = options;
    const check = async (): Promise<void> => {
      const volume = await this.current();
      if (volume === undefined) return;
      throw new Error(`the PersistentVolume ${this.name} is still there, ${volume.status?.phase ?? 'without a phase'}`);
    };
    await eventually(check, { withinMs, signal });
  }
}
