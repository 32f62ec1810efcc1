import type { KubeObject } from '../kube-object.ts';

/** One line, or frame, of a watch (Kubernetes API concepts, "Efficient detection of changes"). */
export interface WatchEvent {
  type: string;
  object: KubeObject & Record<string, unknown>;
}
