/** A driver by script, an API server and the whole program between them. */
import type { Clock } from '../../../src/base/clock.ts';
import type { Environment } from '../../../src/cli/config.ts';
import type { ApiServer, ApiServerOptions } from '../../../sandbox/api/api-server.ts';
import type { SandboxMeta, SandboxObject } from '../../../sandbox/api/client.ts';
import { RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { ApiScene, type ApiSceneOptions, driverName, resource, type SavedVolume } from '../../support/api-scene.ts';
import { Program } from '../../support/program.ts';
import { StoredCluster } from './stored-cluster.ts';

export interface SceneOptions {
  /** Default `d.example.com`. */
  driverName?: string;
  plugin?: string[];
  controller?: string[];
  /** Further flags of the program; retries come after 50 ms unless they say otherwise. */
  flags?: readonly string[];
  /** Environment variables of the program. Default: none. */
  environment?: Environment;
  /** Parameters of class `sc`. */
  parameters?: Record<string, string>;
  /** Further fields of class `sc`; what stands there wins. */
  storageClass?: object;
  /** Objects besides class `sc`. */
  objects?: SandboxObject[];
  /** Another socket than the driver's own, such as that of a driver without any grpc library. */
  socketPath?: string;
  /** What the API server serves. */
  served?: Pick<ApiServerOptions, 'versions' | 'disabledResources'>;
  /** Prepares the API server before the program starts. */
  onServer?: (server: ApiServer) => void;
  /** Of the program. Default: real time. */
  clock?: Clock;
  /** Writes the driver's script before the program starts. */
  script?: (driver: RecordingDriver) => void;
}

interface SceneParts {
  driver: RecordingDriver;
  program: Program;
}

/** A running scene; dispose it. */
export class Scene extends ApiScene {
  readonly driver: RecordingDriver;
  readonly program: Program;

  constructor(options: ApiSceneOptions, parts: SceneParts) {
    super(options);
    this.driver = parts.driver;
    this.program = parts.program;
  }

  static async start<S extends Scene>(
    this: new (options: ApiSceneOptions, parts: SceneParts) => S,
    options: SceneOptions = {},
  ): Promise<S> {
    await using opened = new AsyncDisposableStack();
    const {
      driverName: name = driverName,
      plugin,
      controller,
      parameters = {},
      storageClass: fields = {},
      objects = [],
      flags = [],
    } = options;
    const driver = opened.use(
      await RecordingDriver.start({
        name,
        plugin,
        controller,
      }),
    );
    options.script?.(driver);
    const storageClass = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'sc' },
      provisioner: name,
      reclaimPolicy: 'Delete',
      volumeBindingMode: 'Immediate',
      parameters,
      ...fields,
    };
    const cluster = opened.use(await StoredCluster.start([storageClass, ...objects], options.served));
    options.onServer?.(cluster.server);
    const program = opened.use(
      new Program({
        socketPath: options.socketPath ?? driver.socketPath,
        apiUrl: cluster.url,
        flags: ['--retry-interval-start=50ms', ...flags],
        ...(options.environment && { environment: options.environment }),
        ...(options.clock && { clock: options.clock }),
      }),
    );
    const { server, url } = cluster;
    return new this({ server, url, opened: opened.move(), driver: name }, { driver, program });
  }

  /** As `createClaim`. */
  addClaim(name?: string, spec?: object, metadata?: Partial<SandboxMeta>): SandboxObject {
    return this.createClaim(name, spec, metadata);
  }

  /** Resolves once the program has let go of a released volume. */
  async volumeDeleted(claimName = 'c1'): Promise<void> {
    await this.until(`the end of the volume of ${claimName}`, () => {
      const { deletionTimestamp, finalizers } = this.volumeNow(claimName)?.metadata ?? { deletionTimestamp: 'gone' };
      // the control plane, which this cluster does not have, takes the last finalizer off
      return (
        deletionTimestamp !== undefined && (finalizers ?? []).every((each) => each === 'kubernetes.io/pv-protection')
      );
    });
  }

  /** Resolves once a driver was called. */
  async called(driver: RecordingDriver, method: string): Promise<void> {
    await this.until(`a call of ${method}`, () => driver.callsOf(method).length > 0);
  }

  /** What the control plane does with a volume whose claim was deleted. */
  release({ metadata: { name } }: SavedVolume): void {
    const volume = structuredClone(this.api.get(resource.volumes, { name }));
    if (volume === undefined) throw new Error(`no volume ${name}`);
    this.api.updateStatus(resource.volumes, { ...volume, status: { phase: 'Released' } });
  }
}
