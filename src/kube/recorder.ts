import type { ObjectReference } from './kube-object.ts';

/** Whether all is well or somebody may have to act. */
export type EventType = 'Normal' | 'Warning';

/** Tells users about an object through Kubernetes events. Best effort: it never blocks, throws or fails an operation. */
export interface Recorder {
  /**
   * @param about - kind, apiVersion, namespace, name, uid and resourceVersion of the object the event is about.
   * @param reason - UpperCamelCase, short: a machine reads it.
   * @param message - one line for people, at most 1,024 bytes; secrets never.
   * @param options.once - tell it no second time while the API server still has the first, whoever told that: this
   * process, one before it, or another instance that sees the same. Default false.
   * @param options.logged - the caller logs what the message says, so that the event is not logged, too. Default false.
   */
  event(
    about: ObjectReference,
    type: EventType,
    reason: string,
    message: string,
    options?: { once?: boolean; logged?: boolean },
  ): void;
}
