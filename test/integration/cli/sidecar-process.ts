/** The program as a process of its own, beside a driver by script and an API server in the test's process. */
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import { eventually } from '../../support/eventually.ts';
import { type StartedProcess, startProcess } from '../../support/started-process.ts';
import { RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { StoredCluster } from '../csi/stored-cluster.ts';
import { mainFile } from './program-run.ts';

export interface SidecarProcess extends AsyncDisposable {
  readonly driver: RecordingDriver;
  readonly cluster: StoredCluster;
  readonly process: StartedProcess;
  /** Resolves once the log holds the text; rejects when the process has ended before. */
  logged(text: RegExp): Promise<void>;
}

/** Starts driver, API server and program. Dispose it: the process is killed if it still runs. */
export async function startSidecar(options: {
  flags?: readonly string[];
  objects?: readonly SandboxObject[];
  /** What the program is started through, such as `unshare`. */
  wrapper?: readonly string[];
  /** Of Node.js, such as limits of its heap. */
  nodeFlags?: readonly string[];
  /** Further variables. */
  environment?: Readonly<Record<string, string>>;
  /** The file that starts the program. Default: that of the sources. */
  main?: string;
}): Promise<SidecarProcess> {
  const { flags = [], objects = [], wrapper = [], nodeFlags = [], main = mainFile, environment = {} } = options;
  await using opened = new AsyncDisposableStack();
  const driver = opened.use(await RecordingDriver.start());
  const cluster = opened.use(await StoredCluster.start(objects));
  const args = [...nodeFlags, main, `--csi-address=${driver.socketPath}`, `--master=${cluster.url}`, ...flags];
  const [program = process.execPath, ...rest] = [...wrapper, process.execPath, ...args];
  const started = await startProcess({ program, args: rest, env: { KUBECONFIG: undefined, ...environment } });
  opened.defer(() => started.stop('SIGKILL'));
  const stack = opened.move();
  return {
    driver,
    cluster,
    process: started,
    logged: (text) =>
      eventually(
        () => {
          if (!text.test(started.log())) throw new Error(`no line with ${String(text)}\n${started.log()}`);
        },
        { hopeless: () => (started.running() ? undefined : 'the sidecar has ended') },
      ),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
