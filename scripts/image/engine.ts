import type { StartedProcess } from '../../test/support/started-process.ts';

/** What an image says of itself. */
export interface ImageConfig {
  readonly user: string;
  readonly entrypoint: readonly string[];
  /** As `NAME=value`. */
  readonly environment: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly hasHealthcheck: boolean;
}

/** How a container of a Pod is started. */
export interface ContainerOptions {
  /** Follow the image's entry point. */
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** As `USER:GROUP`, in numbers: the Pod's, whatever the image says. */
  readonly user: string;
  /** Capabilities that the program keeps; default: none. */
  readonly capabilities?: readonly string[];
  /** The container's memory limit; default: none. */
  readonly memoryBytes?: number;
  /** Folders of this machine by where the container sees them. */
  readonly mounts: Readonly<Record<string, string>>;
}

export interface Image {
  readonly config: ImageConfig;
  /** Every file in it by path, with its size in bytes. Links count nothing. */
  files(): Promise<ReadonlyMap<string, number>>;
  /** Starts it with a read-only root file system, no capabilities and this machine's network. */
  start(options: ContainerOptions): Promise<StartedProcess>;
}

/** Builds images from the Dockerfile and runs them. Disposing removes what it made. */
export interface Engine extends AsyncDisposable {
  readonly name: string;
  /** Whether `memoryBytes` is enforced: it takes the permission to make memory cgroups. */
  readonly limitsMemory: boolean;
  /** Files of the runtime stage's base image. */
  baseFiles(): Promise<ReadonlyMap<string, number>>;
  /** Why a target cannot be built here; undefined: it can. */
  obstacle(target: string): Promise<string | undefined>;
  /** @throws when the build fails, with the engine's output. */
  build(target: string): Promise<Image>;
}
