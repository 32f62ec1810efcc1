/** What the controller counts; times in seconds. `class` and `source` may be empty. */
export interface ControllerMetrics {
  /** Called once, with a function that says which classes exist: claims may name any class. */
  followClasses?(exists: (name: string) => boolean): void;
  provisioned(labels: { class: string; source: string }, seconds: number): void;
  /** Also counts attempts that end without retry: volume exists, Block refused, foreign class, ignored, rescheduled. */
  provisionFailed(labels: { class: string; source: string }): void;
  deleted(labels: { class: string }, seconds: number): void;
  deleteFailed(labels: { class: string }): void;
}

const nothing = (): void => undefined;

/** Counts nothing: the default. */
export const noMetrics: ControllerMetrics = {
  provisioned: nothing,
  provisionFailed: nothing,
  deleted: nothing,
  deleteFailed: nothing,
};
