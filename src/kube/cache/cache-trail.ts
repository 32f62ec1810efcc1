import type { KubeObject } from '../kube-object.ts';

/** The types of watch events that change a resource. */
export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

/**
 * Follows a cache on its way through the resource versions: for those who must know what happened between two of them, and
 * not only how it ended. Called synchronously and in order; must not throw.
 */
export interface CacheTrail {
  /**
   * The whole content was listed: what happened since the version before is not known.
   *
   * @param options.rewound - the server has gone back to an older state, as after a restore of etcd.
   */
  listed(resourceVersion: string, options: { rewound: boolean }): void;
  /** An event of the watch, also one that changes nothing that is cached. `object` as it came, not to be kept. */
  changed(type: ChangeType, object: KubeObject): void;
  /** An event that could not be read: nobody knows what it was about. */
  missed(): void;
  /** The cache has everything up to this resource version. */
  advanced(resourceVersion: string): void;
}
