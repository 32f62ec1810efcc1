/** The claims of one namespace and class, which share their turns. */
export interface Flow {
  readonly namespace: string;
  readonly className: string;
}

export interface Turn {
  readonly key: string;
  readonly flow: Flow;
}

export interface TurnLimits {
  isFull: (namespace: string) => boolean;
  mayTake: (flow: Flow) => boolean;
}

/** Waiting keys; namespaces take turns, and so do the classes in each. */
export class ClaimTurns {
  readonly #namespaces = new Map<string, Map<string, Set<string>>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(key: string, { namespace, className }: Flow): void {
    const classes = this.#namespaces.get(namespace) ?? new Map<string, Set<string>>();
    const keys = classes.get(className) ?? new Set<string>();
    this.#size += keys.has(key) ? 0 : 1;
    this.#namespaces.set(namespace, classes.set(className, keys.add(key)));
  }

  /**
   * Takes the next key of a flow that `mayTake` allows. Its namespace and class then go behind all others.
   *
   * @param limits.isFull - whether `mayTake` allows no class of the namespace: then it is not called for any.
   */
  take({ isFull, mayTake }: TurnLimits): Turn | undefined {
    for (const [namespace, classes] of this.#namespaces) {
      if (isFull(namespace)) continue;
      for (const [className, keys] of classes) {
        const flow = { namespace, className };
        if (!mayTake(flow)) continue;
        moveToEnd(classes, className);
        moveToEnd(this.#namespaces, namespace);
        return this.#takeFirst(keys, flow);
      }
    }
    return undefined;
  }

  /** Removes all keys of a flow and returns them in their order. */
  removeFlow({ namespace, className }: Flow): Iterable<string> {
    const keys = this.#namespaces.get(namespace)?.get(className) ?? new Set<string>();
    this.#size -= keys.size;
    this.#drop({ namespace, className });
    return keys;
  }

  /** Takes out all keys. */
  clear(): Turn[] {
    const all = [...this.#namespaces].flatMap(([namespace, classes]) =>
      [...classes].flatMap(([className, keys]) => [...keys].map((key) => ({ key, flow: { namespace, className } }))),
    );
    this.#namespaces.clear();
    this.#size = 0;
    return all;
  }

  #takeFirst(keys: Set<string>, flow: Flow): Turn | undefined {
    for (const key of keys) {
      keys.delete(key);
      this.#size--;
      if (keys.size === 0) this.#drop(flow);
      return { key, flow };
    }
    return undefined;
  }

  #drop({ namespace, className }: Flow): void {
    const classes = this.#namespaces.get(namespace);
    classes?.delete(className);
    if (classes?.size === 0) this.#namespaces.delete(namespace);
  }
}

function moveToEnd<T>(map: Map<string, T>, key: string): void {
  const value = map.get(key);
  if (value === undefined || map.size === 1) return;
  map.delete(key);
  map.set(key, value);
}
