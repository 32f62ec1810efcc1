import type { Clock } from '../base/clock.ts';
import { TaskGroup } from '../base/task-group.ts';
import { type AnyInformer, type Caches, checkCaches } from './cache-health.ts';
import type { Health } from './health.ts';

/** Caches that run until their group is aborted; each is started once, however many features need it. */
export class RunningCaches implements Disposable {
  /** Background tasks of the features, which end after them. */
  readonly group = new TaskGroup();
  readonly #health: { ready: Health; clock: Clock };
  readonly #running = new Set<AnyInformer>();
  readonly #checks = new DisposableStack();

  /** @param options.ready - fails while a needed cache has not synced or is silent, until this is disposed. */
  constructor(options: { ready: Health; clock: Clock }) {
    this.#health = options;
  }

  /** Runs caches that readiness does not depend on. */
  start(caches: Caches): void {
    for (const informer of Object.values(caches)) {
      if (!this.#running.has(informer)) this.group.start((signal) => informer.run(signal));
      this.#running.add(informer);
    }
  }

  /** Runs caches and makes readiness depend on them. */
  need(caches: Caches): void {
    this.start(caches);
    this.#checks.use(checkCaches(this.#health, caches));
  }

  [Symbol.dispose](): void {
    this.#checks.dispose();
  }
}
