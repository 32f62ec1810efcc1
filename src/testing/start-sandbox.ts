import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect, KubeClient, type KubeObject, type StorageClass, storageClasses } from '../index.ts';
import { StartedProgram } from './child-process.ts';
import { eventually } from './eventually.ts';
import { forbiddenRights, rightsText } from './forbidden-rights.ts';
import { sandboxProgram } from './sandbox-program.ts';
import { type ClaimSketch, TestClaim } from './test-claim.ts';
import { TestVolume } from './test-volume.ts';

const startMs = 60_000;
const fieldManager = 'csi-provisioner-testing';

/** What may be chosen of a sandbox; every field has a default. */
export interface SandboxSettings {
  /** How many nodes there are, 0 to 1000, in turns in the zones `a` and `b`. Default 2. */
  nodes?: number;
  /**
   * What the provisioner may do: path of the YAML with its roles and bindings, such as the `rbac.yaml` of its deployment, or the objects.
   * The API then is HTTPS with authorization as a cluster's, and `provisionerKubeconfig` has the rights of the service account of the
   * bindings. Default: everybody may do everything.
   */
  rbac?: string | readonly KubeObject[];
  /** Further flags of `csi-sandbox api`, such as `--rbac` or `--faults`. Default: none. */
  flags?: readonly string[];
  /** How long `bound()`, `gone()` and their like wait, in milliseconds. Default 60,000. */
  patienceMs?: number;
}

/** A running sandbox. Its claims and volumes can be waited for. */
export class TestSandbox implements AsyncDisposable {
  /** Of the API, such as `http://127.0.0.1:40123`. */
  readonly url: string;
  /** Path of an administrator's kubeconfig, for the environment variable `KUBECONFIG`. It is removed with the sandbox. */
  readonly kubeconfig: string;
  /** Path of the provisioner's kubeconfig: with `rbac` it has the rights of its service account alone, else it is `kubeconfig`. */
  readonly provisionerKubeconfig: string;
  /** As administrator. */
  readonly client: KubeClient;
  /** @internal Aborts at the first right that the provisioner lacks. */
  readonly forbidden: AbortSignal;
  readonly #program: StartedProgram;
  readonly #patienceMs: number;
  readonly #resources: AsyncDisposableStack;

  /** @internal */
  constructor(
    resources: AsyncDisposableStack,
    parts: Pick<TestSandbox, 'url' | 'kubeconfig' | 'provisionerKubeconfig' | 'client' | 'forbidden'> & {
      program: StartedProgram;
      patienceMs: number;
    },
  ) {
    this.#resources = resources;
    this.#patienceMs = parts.patienceMs;
    this.url = parts.url;
    this.kubeconfig = parts.kubeconfig;
    this.provisionerKubeconfig = parts.provisionerKubeconfig;
    this.forbidden = parts.forbidden;
    this.#program = parts.program;
    this.client = parts.client;
  }

  /**
   * What `rbac` did not permit the provisioner so far: a line for each resource with the rule that is missing; empty when it was
   * permitted everything.
   */
  get missingRights(): string {
    return rightsText(forbiddenRights(this.#program.log));
  }

  /** Creates a class. @throws {ApiError} when it is not valid or exists. */
  async storageClass(fields: Omit<StorageClass, 'metadata'> & { name: string }): Promise<StorageClass> {
    const { name, ...rest } = fields;
    return await this.client.create<StorageClass>(storageClasses, { metadata: { name }, ...rest });
  }

  /**
   * A claim: with a sketch it is created, with a name alone it is one that exists, in the namespace `default`. What the API server says
   * about it is thrown by the methods of the claim.
   */
  claim(sketch: ClaimSketch | string): TestClaim {
    return new TestClaim(typeof sketch === 'string' ? { name: sketch } : sketch, {
      client: this.client,
      patienceMs: this.#patienceMs,
      isNew: typeof sketch !== 'string',
    });
  }

  /** A PersistentVolume by its name, whether it exists or not. */
  volume(name: string): TestVolume {
    return new TestVolume(name, { client: this.client, patienceMs: this.#patienceMs });
  }

  /** Ends the sandbox; all objects go with it. Safe to repeat. */
  async close(): Promise<void> {
    await this.#resources.disposeAsync();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/**
 * Starts the API of the sandbox with its controllers, on a free port of 127.0.0.1 and in a process of its own: tests may block. It ends
 * with `close`, with `await using`, and with this process.
 *
 * @throws when it does not start; the message has what it wrote.
 */
export async function startSandbox(settings: SandboxSettings = {}): Promise<TestSandbox> {
  const { nodes = 2, rbac, flags = [], patienceMs = 60_000 } = settings;
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), 'csi-provisioner-testing-'));
  starting.defer(() => rm(folder, { recursive: true, force: true }));
  const kubeconfig = path.join(folder, 'kubeconfig');
  const rights = rbac === undefined ? [] : [`--rbac-manifest=${await manifestFile(rbac, folder)}`];
  const args = ['api', `--kubeconfig=${kubeconfig}`, `--nodes=${nodes}`, ...rights, ...flags];
  const missing = new AbortController();
  const program = await StartedProgram.start({
    command: [process.execPath, sandboxProgram(), ...args],
    onOutput: (log) => {
      if (forbiddenRights(log).length > 0) missing.abort(new Error('the provisioner lacks a right'));
    },
  });
  starting.defer(() => program.stop(5000));
  const { url, accountKubeconfig: provisionerKubeconfig = kubeconfig } = await announced(program);
  const transport = starting.use(connect({ kubeconfig }));
  const client = new KubeClient({ transport, fieldManager });
  const { signal: forbidden } = missing;
  const parts = { url, kubeconfig, provisionerKubeconfig, client, forbidden, program, patienceMs };
  return new TestSandbox(starting.move(), parts);
}

/** JSON is YAML. */
async function manifestFile(rbac: string | readonly KubeObject[], folder: string): Promise<string> {
  if (typeof rbac === 'string') return rbac;
  const file = path.join(folder, 'rbac.yaml');
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: rbac }));
  return file;
}

/** The first line of a sandbox. */
interface Announcement {
  url: string;
  accountKubeconfig?: string;
}

/** Its first line says where it is. */
async function announced(program: StartedProgram): Promise<Announcement> {
  return await eventually(() => JSON.parse(/^\{.*\}$/m.exec(program.log)?.[0] ?? '') as Announcement, {
    withinMs: startMs,
    hopeless: () => (program.isRunning ? undefined : `the sandbox has ended with ${program.ending}:\n${program.log}`),
  });
}
