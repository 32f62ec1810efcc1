import type { ObjectReference } from '../kube-object.ts';

/** `Warning` where an operator may have to act. */
export type EventType = 'Normal' | 'Warning';

/** How an event is recorded. */
export interface RecordOptions {
  /**
   * Do not record it again while the API server still has it, recorded by this process, an earlier one or another instance. Default
   * false.
   */
  once?: boolean;
  /** The caller logs it, so that the event is not logged, too. Default false. */
  logged?: boolean;
  /** For programs that read the event. Default: none. */
  annotations?: Record<string, string> | undefined;
}

/** Records events about objects. Best effort: it never blocks, throws or fails an operation. */
export interface Recorder {
  /**
   * @param about - kind, apiVersion, namespace, name, uid and resourceVersion of the object the event is about.
   * @param reason - UpperCamelCase, short: a machine reads it.
   * @param message - one line for people, at most 1,024 bytes; secrets never. A message above 65,536 characters is
   * truncated.
   */
  event(about: ObjectReference, type: EventType, reason: string, message: string, options?: RecordOptions): void;
}
