import { setTimeout as delay } from 'node:timers/promises';
import type { KubeObject, Resource } from '../../src/kube/kube-object.ts';
import {
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  type ReclaimPolicy,
  storageClasses,
} from '../../src/provision/objects.ts';
import type { Stage } from '../../test/support/stage.ts';
import type { WantedClaim } from './count.ts';
import type { Random } from './random.ts';
import { insist } from './world.ts';

const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };
const secrets: Resource = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true };

/** Classes by share of the claims. `Retain`: what was made for a claim that has gone must be kept. */
const classes = [
  { name: 'plain', share: 0.4, parameters: {} },
  { name: 'other', share: 0.25, parameters: { tier: 'other' } },
  {
    name: 'secret',
    share: 0.25,
    parameters: {
      requireSecret: 'password',
      'csi.storage.k8s.io/provisioner-secret-name': 'credentials',
      'csi.storage.k8s.io/provisioner-secret-namespace': '${pvc.namespace}',
    },
  },
  { name: 'retain', share: 0.1, parameters: {}, reclaimPolicy: 'Retain' as ReclaimPolicy },
];

/** Users' claims, namespaces and classes: how they come, change and go. */
export class ClaimLoad {
  readonly created: WantedClaim[] = [];
  /** While true nothing is deleted or recreated. */
  paused = false;
  readonly #stage: Stage;
  readonly #driverName: string;
  readonly #random: Random;
  readonly #deletions: boolean;
  readonly #work = new Set<Promise<unknown>>();
  readonly #stop = new AbortController();
  #namespaces: string[] = [];
  #namespaceCount = 0;
  #generation = 0;

  constructor(options: { stage: Stage; driverName: string; random: Random; deletions: boolean }) {
    this.#stage = options.stage;
    this.#driverName = options.driverName;
    this.#random = options.random;
    this.#deletions = options.deletions;
  }

  /** Makes the classes and the first namespaces. */
  async begin(): Promise<void> {
    for (const { name } of classes) await this.#createClass(name);
    for (let i = 0; i < 3; i++) await this.#createNamespace();
  }

  /** Creates so many claims at random moments within `spanMs`, and deletes a part of them later; does not wait for that. */
  create(number: number, spanMs: number): void {
    for (let i = 0; i < number; i++) this.#begin(this.#live(this.#random.between(0, spanMs)));
  }

  /** Name of a namespace that is not being deleted. */
  namespace(): string {
    return this.#namespaces.at(-1) ?? 'default';
  }

  /** Deletes a namespace with all that is in it. */
  async deleteNamespace(): Promise<void> {
    if (this.paused) return;
    await this.#createNamespace();
    const name = this.#random.pick(this.#namespaces.slice(0, -1));
    this.#namespaces = this.#namespaces.filter((each) => each !== name);
    for (const claim of this.created) if (claim.namespace === name) claim.unwantedMs ??= Date.now();
    await insist(() => this.#stage.client.delete(namespaces, { name }), ['NotFound', 'Conflict']);
  }

  /** Deletes claims. */
  async giveUp(claims: readonly WantedClaim[]): Promise<void> {
    for (const claim of claims) {
      claim.unwantedMs ??= Date.now();
      await insist(() => this.#stage.client.delete(persistentVolumeClaims, claim), ['NotFound']);
    }
  }

  /** Deletes a class and creates it with other parameters. */
  async recreateClass(): Promise<void> {
    if (this.paused) return;
    const { name } = this.#random.pick(classes);
    await insist(() => this.#stage.client.delete(storageClasses, { name }), ['NotFound']);
    await delay(this.#random.between(0, 500));
    this.#generation++;
    await this.#createClass(name);
  }

  /** Ends: what is not deleted yet stays. */
  async end(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#work);
  }

  #begin(work: Promise<unknown>): void {
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
  }

  async #live(afterMs: number): Promise<void> {
    const random = this.#random;
    const [fate, soonMs, lateMs, share] = [
      random.next(),
      random.between(0, 1500),
      random.between(3000, 20_000),
      random.next(),
    ];
    const namespaceChoice = random.next();
    await delay(afterMs);
    const namespace = this.#namespaces[Math.floor(namespaceChoice * this.#namespaces.length)] ?? 'default';
    const claim: WantedClaim = {
      namespace,
      name: `claim-${this.created.length}`,
      uid: undefined,
      unwantedMs: undefined,
    };
    this.created.push(claim);
    await this.#createClaim(claim, classAt(share));
    if (!this.#deletions || fate >= 0.6) return;
    await this.#wait(fate < 0.5 ? soonMs : lateMs);
    while (this.paused) await this.#wait(100);
    if (this.#stop.signal.aborted) return;
    claim.unwantedMs ??= Date.now();
    await insist(() => this.#stage.client.delete(persistentVolumeClaims, claim), ['NotFound']);
  }

  async #wait(ms: number): Promise<void> {
    const { signal } = this.#stop;
    await delay(ms, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) this.paused = false;
  }

  async #createClaim(claim: WantedClaim, storageClassName: string): Promise<void> {
    const created =
      // Forbidden: the namespace is being deleted.
      (await insist(
        () => this.#stage.createClaim(claim, storageClassName, { size: '1Mi' }),
        ['AlreadyExists', 'Forbidden', 'NotFound'],
      )) ??
      (await insist(() => this.#stage.client.get<PersistentVolumeClaim>(persistentVolumeClaims, claim), ['NotFound']));
    claim.uid = created?.metadata.uid;
  }

  async #createNamespace(): Promise<void> {
    const name = `chaos-${this.#namespaceCount++}`;
    await insist(() => this.#stage.createNamespace(name), ['AlreadyExists']);
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: name, name: 'credentials' },
      data: { password: Buffer.from('chaos').toString('base64') },
    };
    await insist(() => this.#stage.client.create<KubeObject>(secrets, secret), ['AlreadyExists']);
    this.#namespaces.push(name);
  }

  async #createClass(name: string): Promise<void> {
    const { parameters, reclaimPolicy = 'Delete' } = classes.find((each) => each.name === name) ?? {};
    const more = { reclaimPolicy, parameters: { ...parameters, generation: String(this.#generation) } };
    await insist(() => this.#stage.createClass(name, this.#driverName, more), ['AlreadyExists']);
  }
}

function classAt(share: number): string {
  let sum = 0;
  return classes.find((each) => (sum += each.share) > share)?.name ?? 'plain';
}
