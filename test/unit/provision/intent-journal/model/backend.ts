/** A storage backend in memory: CreateVolume by name, DeleteVolume by handle, and the bad days of both. */

/** How CreateVolume can fail, by the code of its answer. */
export type BackendCode = 'Aborted' | 'AlreadyExists' | 'DeadlineExceeded' | 'Internal' | 'ResourceExhausted';

export class BackendError extends Error {
  override readonly name = 'BackendError';
  readonly code: BackendCode;

  constructor(code: BackendCode) {
    super(code);
    this.code = code;
  }
}

export interface BackendVolume {
  name: string;
  handle: string;
  args: string;
  /** Smaller than what was requested. */
  unfit: boolean;
}

/**
 * What the next CreateVolume does.
 *
 * - `made-unclear`: makes the volume and answers DEADLINE_EXCEEDED.
 * - `background`: answers DEADLINE_EXCEEDED and goes on; ABORTED until the volume is made.
 * - `background-failed`: the same, and makes nothing in the end.
 * - `late`: the same as `background`, but other calls for the name are served meanwhile.
 * - `exhausted`: RESOURCE_EXHAUSTED, unless the volume is there.
 * - `internal`: INTERNAL, whatever is there.
 * - `unfit`: makes a volume that is too small.
 */
export const createFaults = [
  'made-unclear',
  'background',
  'background-failed',
  'late',
  'exhausted',
  'internal',
  'unfit',
] as const;
export type CreateFault = (typeof createFaults)[number];

interface Work {
  name: string;
  args: string;
  untilMs: number;
  /** Other calls for the name are answered with ABORTED. */
  isExclusive: boolean;
  finish: () => void;
}

export class Backend {
  readonly volumes = new Map<string, BackendVolume>();
  #work: Work[] = [];
  #createFaults: CreateFault[] = [];
  #deleteFaults = 0;
  #made = 0;
  readonly #nowMs: () => number;
  readonly #maxWorkMs: number;
  readonly #handlesFromNames: boolean;
  readonly #onOtherArgs: (name: string, existing: BackendVolume | undefined) => void;

  /**
   * @param options.maxWorkMs - work goes on at most this long after its call was sent, in milliseconds.
   * @param options.handlesFromNames - a volume that is made again has the handle of the one before.
   * @param options.onOtherArgs - called when a volume that exists, or is being created, is requested with other
   * arguments.
   */
  constructor(options: {
    nowMs: () => number;
    maxWorkMs: number;
    handlesFromNames: boolean;
    onOtherArgs: (name: string, existing: BackendVolume | undefined) => void;
  }) {
    this.#nowMs = options.nowMs;
    this.#maxWorkMs = options.maxWorkMs;
    this.#handlesFromNames = options.handlesFromNames;
    this.#onOtherArgs = options.onOtherArgs;
  }

  failCreate(fault: CreateFault): void {
    this.#createFaults.push(fault);
  }

  /** The next DeleteVolume fails without having done anything. */
  failDelete(): void {
    this.#deleteFaults++;
  }

  noMoreFaults(): void {
    this.#createFaults = [];
    this.#deleteFaults = 0;
  }

  byName(name: string): BackendVolume[] {
    return [...this.volumes.values()].filter((volume) => volume.name === name);
  }

  fitHandles(): string[] {
    return [...this.volumes.values()].filter(({ unfit }) => !unfit).map(({ handle }) => handle);
  }

  /** Work in the background ends: all of it, or what has taken its time. */
  finishWork({ all }: { all: boolean }): void {
    const ending = this.#work.filter(({ untilMs }) => all || untilMs <= this.#nowMs());
    this.#work = this.#work.filter((work) => !ending.includes(work));
    for (const { finish } of ending) finish();
  }

  /** @throws {BackendError} */
  create(name: string, args: string, sentAtMs: number): BackendVolume {
    const [existing] = this.byName(name);
    const isOther = existing !== undefined && existing.args !== args;
    if (isOther || this.#work.some((work) => work.name === name && work.args !== args))
      this.#onOtherArgs(name, existing);
    if (this.#work.some((work) => work.name === name && work.isExclusive)) {
      if (this.#createFaults[0] !== 'internal') throw new BackendError('Aborted');
      this.#createFaults.shift();
      throw new BackendError('Internal');
    }
    if (isOther) throw new BackendError('AlreadyExists');
    const fault = this.#createFaults.shift();
    if (fault === 'internal') throw new BackendError('Internal');
    if (fault === 'exhausted' && existing === undefined) throw new BackendError('ResourceExhausted');
    if (existing === undefined && (fault === 'background' || fault === 'background-failed' || fault === 'late')) {
      const finish = (): void => {
        if (fault !== 'background-failed' && this.byName(name).length === 0) this.#make(name, args, { unfit: false });
      };
      this.#work.push({ name, args, untilMs: sentAtMs + this.#maxWorkMs, isExclusive: fault !== 'late', finish });
      throw new BackendError('DeadlineExceeded');
    }
    const volume = existing ?? this.#make(name, args, { unfit: fault === 'unfit' });
    if (fault === 'made-unclear') throw new BackendError('DeadlineExceeded');
    return volume;
  }

  /** @throws {BackendError} */
  delete(handle: string): void {
    if (this.#deleteFaults > 0) {
      this.#deleteFaults--;
      throw new BackendError('DeadlineExceeded');
    }
    this.volumes.delete(handle);
  }

  #make(name: string, args: string, { unfit }: { unfit: boolean }): BackendVolume {
    const handle = this.#handlesFromNames ? `handle-of-${name}` : `handle-${++this.#made}`;
    const volume = { name, handle, args, unfit };
    this.volumes.set(handle, volume);
    return volume;
  }
}
