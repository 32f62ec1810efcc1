/** The driver as a cluster runs it with node deployment: on each node a process of its own, and a sidecar beside it. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Bench, type DriverPerNode, type NodeUnderCheck } from './bench.ts';
import type { BenchOptions } from './bench-options.ts';
import { cleanUp } from './clean-up.ts';
import type { DriverProgram } from './driver-program.ts';
import { KubernetesBench } from './kubernetes-bench.ts';
import { Ledger } from './ledger.ts';
import { CheckFailed } from './outcome.ts';
import { sidecarCalls } from './sidecar-calls.ts';
import { waitForDriver } from './wait-for-driver.ts';

/** Starts the driver of a node; it may not be ready yet. */
export type StartNodeDriver = (place: {
  readonly node: string;
  readonly socketPath: string;
}) => Promise<NodeDriver> | NodeDriver;

export type NodeDriver = Pick<DriverProgram, 'lastWords'> & AsyncDisposable;

export interface NodeDeploymentOptions {
  readonly bench: BenchOptions;
  readonly start: StartNodeDriver;
  /** How long to wait until a driver is ready, in milliseconds. */
  readonly waitMs: number;
  readonly logFolder: string | undefined;
  readonly sidecarProgram: readonly string[] | undefined;
  readonly signal: AbortSignal;
  /** Takes a line for each thing that could not be removed at the end. */
  readonly leftBehind: (text: string) => void;
}

const nodeNames = ['node-1', 'node-2'];

export class NodeDeployment implements DriverPerNode, AsyncDisposable {
  readonly nodes: readonly NodeUnderCheck[];
  readonly #options: NodeDeploymentOptions;
  readonly #resources: AsyncDisposableStack;
  #starting: Promise<KubernetesBench> | undefined;

  private constructor(
    options: NodeDeploymentOptions,
    { nodes, resources }: { nodes: readonly NodeUnderCheck[]; resources: AsyncDisposableStack },
  ) {
    this.#options = options;
    this.nodes = nodes;
    this.#resources = resources;
  }

  /** Starts the drivers. @throws {CheckFailed} for one that is not ready in time; nothing is left running then. */
  static async start(options: NodeDeploymentOptions): Promise<NodeDeployment> {
    await using resources = new AsyncDisposableStack();
    const folder = await mkdtemp(path.join(tmpdir(), 'check-'));
    resources.defer(() => rm(folder, { recursive: true, force: true }));
    const nodes: NodeUnderCheck[] = [];
    for (const node of nodeNames) {
      await mkdir(path.join(folder, node));
      const socketPath = path.join(folder, node, 'csi.sock');
      const driver = resources.use(await options.start({ node, socketPath }));
      await ready(driver, { node, socketPath }, options);
      const bench = resources.use(await Bench.start({ ...options.bench, socketPath }));
      await bench.noteListed();
      nodes.push({ node, bench, calls: sidecarCalls(bench.ledger) });
    }
    return new NodeDeployment(options, { nodes, resources: resources.move() });
  }

  /** The sandbox with the sidecars, started when it is first needed. */
  kubernetes(): Promise<KubernetesBench> {
    const { bench: options, logFolder, sidecarProgram, waitMs, signal } = this.#options;
    const [first] = this.nodes;
    this.#starting ??= KubernetesBench.start(
      { options, facts: first!.bench.facts, ledger: new Ledger() },
      {
        logFolder,
        sidecarProgram,
        waitMs,
        signal,
        perNode: this.nodes.map(({ node, bench }) => ({ node, socketPath: bench.options.socketPath })),
        observe: (call, { node }) => this.nodes.find((each) => each.node === node)?.calls.observe(call),
      },
    );
    return this.#starting;
  }

  /** Claims that are left keep their volumes, which are then deleted by calls to the drivers. */
  async [Symbol.asyncDispose](): Promise<void> {
    const running = await this.#starting?.catch(() => undefined);
    await running?.[Symbol.asyncDispose]();
    for (const { node, bench } of this.nodes) {
      for (const text of await cleanUp(bench)) this.#options.leftBehind(`on ${node}, ${text}`);
    }
    await this.#resources.disposeAsync();
  }
}

/** @throws {CheckFailed} */
async function ready(
  driver: NodeDriver,
  { node, socketPath }: { node: string; socketPath: string },
  { waitMs, signal }: NodeDeploymentOptions,
): Promise<void> {
  try {
    await waitForDriver({ socketPath, waitMs, signal, report: () => undefined });
  } catch (error) {
    signal.throwIfAborted();
    throw new CheckFailed(`the driver of ${node}: ${(error as Error).message}; ${driver.lastWords()}`);
  }
}
