import { execFile } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { patienceMs } from '../patience.ts';
import { apiRequest, type ApiAccess } from './api-request.ts';
import { auditPolicy, type AuditLevel } from './audit-log.ts';
import { logTail, startComponent, type Component } from './component.ts';
import { freePort, freePorts } from '../free-ports.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { programHelp } from './program-help.ts';
import { findPrograms, type ProgramName } from './programs.ts';

export interface ControlPlaneOptions {
  /** Folder of the programs; by default found or compiled, see `findPrograms`. */
  binDir?: string;
  /** Where the programs' logs go; by default the temporary folder, which `stop` removes. */
  logDir?: string;
  /** Whether the API server records every request; default false. */
  auditLog?: boolean;
  /** What the audit log holds of each request; default `Metadata`. */
  auditLevel?: AuditLevel;
  /** Users beside the administrator that `kubeconfigFor` can serve, with their groups. */
  users?: { name: string; groups?: string[] }[];
  /** Further flags for one program, last so that they win. */
  extraArgs?: Partial<Record<Exclude<ProgramName, 'kubectl'>, string[]>>;
  /** How long the API server may take to become ready; default 120 s. */
  startTimeoutMs?: number;
}

/** Folder of the programs, and further flags for each. */
export type ServerPrograms = Required<Pick<ControlPlaneOptions, 'binDir' | 'extraArgs'>>;

/** An API server beside the first one. */
export interface FurtherApiServer {
  /** `https://127.0.0.1:<port>`. */
  readonly url: string;
  /** Path of the administrator's kubeconfig for this server. */
  readonly adminKubeconfig: string;
  /** Path of its own audit log, if the control plane was asked for one. */
  readonly auditLogFile: string | undefined;
}

/** A running control plane on loopback ports, with RBAC and without nodes: pods get scheduled and never run. */
export interface ControlPlane extends AsyncDisposable {
  /** `https://127.0.0.1:<port>`. */
  readonly url: string;
  /** `http://127.0.0.1:<port>` of etcd, for loading many objects past the API server. */
  readonly etcdUrl: string;
  /** PEM of the API server's certificate authority. */
  readonly ca: string;
  /** Bearer token of a user in `system:masters`. */
  readonly adminToken: string;
  /** Path of the administrator's kubeconfig. */
  readonly adminKubeconfig: string;
  /** Temporary folder of all files; gone after `stop`. */
  readonly folder: string;
  /** Folder of the programs that it was started with, `kubectl` among them. */
  readonly binDir: string;
  /** Path of the audit log, if asked for; see `readAuditLog`. */
  readonly auditLogFile: string | undefined;
  /**
   * Writes a kubeconfig for `user` and gives its path. `system:serviceaccount:NAMESPACE:NAME` gets a token from the
   * TokenRequest API, valid for a day, in the account's namespace; other users must be among `users`.
   *
   * @throws for an unknown user, and when the service account does not exist.
   */
  kubeconfigFor(user: string): Promise<string>;
  /** Runs kubectl as the administrator and gives its stdout. @throws when it fails, with its stderr. */
  kubectl(args: string[], options?: { input?: string }): Promise<string>;
  /** Ends the API server at once, without goodbye to its clients. Safe to repeat. */
  killApiServer(): Promise<void>;
  /** Such as SIGSTOP, which has it stand still with all its connections. @throws when it was never started. */
  signalApiServer(signal: NodeJS.Signals): void;
  /** Starts the API server on the same port, ending it first if it runs, and waits until it is ready. */
  restartApiServer(): Promise<void>;
  /**
   * Starts a further API server with the programs of a folder and waits until it is ready: as in a highly available control
   * plane. It shares etcd, certificate, users and keys with the first one; controller manager and scheduler stay with that.
   */
  addApiServer(programs: ServerPrograms): Promise<FurtherApiServer>;
  /**
   * Replaces the API server, controller manager and scheduler by those of another folder, with further flags of their own,
   * and waits until the API is ready. Ports, files, tokens and etcd with its data stay.
   */
  replacePrograms(programs: ServerPrograms): Promise<void>;
  /**
   * Stops etcd and copies its data, as the file of `etcdctl snapshot save` would hold it; the API server is without its store
   * meanwhile. A second one replaces the first.
   */
  backUpEtcd(): Promise<void>;
  /**
   * Puts the data of `backUpEtcd` in the place of the present, while the API server, controller manager and scheduler are down,
   * and waits until the API is ready. What was written since is gone, and resource versions are those of the backup.
   */
  restoreEtcd(): Promise<void>;
  /** Ends the controller manager: nothing binds or protects volumes any more. Safe to repeat. */
  stopControllerManager(): Promise<void>;
  /** Starts the controller manager after `stopControllerManager`. */
  startControllerManager(): Promise<void>;
  /** Ends every process and removes the temporary folder. Safe to repeat. */
  stop(): Promise<void>;
}

/**
 * What stands in for a cluster's own controllers: volumes, their protection, and what namespaces and owners need.
 * None looks after nodes, so a node without kubelet stays as the test made it. Those that a version does not have are left
 * out: the controller manager refuses a name that it does not know.
 */
const controllers = [
  'persistentvolume-binder-controller',
  'persistentvolume-protection-controller',
  'persistentvolumeclaim-protection-controller',
  'persistentvolume-expander-controller',
  'volumeattributesclass-protection-controller',
  'ephemeral-volume-controller',
  'namespace-controller',
  'serviceaccount-controller',
  'garbage-collector-controller',
  'deployment-controller',
  'replicaset-controller',
  'statefulset-controller',
];

/**
 * Starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler and waits until the API is ready and the
 * controllers work.
 *
 * The API server makes its own serving certificate, users come with bearer tokens, and the key that signs service
 * account tokens is made here: no tool beside the programs is needed.
 *
 * @throws when a program ends early or the time is up; the message has the end of its log.
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const { auditLog = false, auditLevel = 'Metadata', users = [], startTimeoutMs = patienceMs } = options;
  const binDir = options.binDir ?? (await findPrograms());
  let programs: ServerPrograms = { binDir, extraArgs: options.extraArgs ?? {} };
  const folder = await mkdtemp(join(tmpdir(), 'control-plane-'));
  const logDir = options.logDir ?? join(folder, 'logs');
  await mkdir(logDir, { recursive: true });
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  process.on('exit', removeFolder);

  const [etcdPort = 0, etcdPeerPort = 0, apiPort = 0] = await freePorts(3);
  const url = `https://127.0.0.1:${apiPort}`;
  const file = (name: string): string => join(folder, name);
  const tokens = new Map<string, string>();
  const running = new Map<ProgramName, Component>();
  const further: Component[] = [];

  const launch = async (
    name: Exclude<ProgramName, 'kubectl'>,
    args: string[],
    { binDir, extraArgs }: ServerPrograms,
    logName: string = name,
  ): Promise<Component> =>
    await startComponent({
      name,
      program: join(binDir, name),
      args: [...args, ...(extraArgs[name] ?? [])],
      logFile: join(logDir, `${logName}.log`),
    });
  const start = async (name: Exclude<ProgramName, 'kubectl'>, args: string[]): Promise<Component> => {
    const component = await launch(name, args, programs);
    running.set(name, component);
    return component;
  };
  const end = async (name: ProgramName): Promise<void> => running.get(name)?.stop();

  const startEtcd = async (): Promise<Component> =>
    await start('etcd', [
      `--data-dir=${file('etcd')}`,
      `--listen-client-urls=http://127.0.0.1:${etcdPort}`,
      `--advertise-client-urls=http://127.0.0.1:${etcdPort}`,
      `--listen-peer-urls=http://127.0.0.1:${etcdPeerPort}`,
      `--initial-advertise-peer-urls=http://127.0.0.1:${etcdPeerPort}`,
      `--initial-cluster=default=http://127.0.0.1:${etcdPeerPort}`,
      '--unsafe-no-fsync', // the data is thrown away anyway
      '--log-level=warn',
    ]);

  const auditLogFile = auditLog ? join(logDir, 'audit.log') : undefined;
  const apiServerArgs = (port: number, auditLogOfServer: string | undefined): string[] => [
    `--etcd-servers=http://127.0.0.1:${etcdPort}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    `--cert-dir=${file('certs')}`, // where it keeps its self-made certificate over a restart
    `--token-auth-file=${file('tokens.csv')}`,
    '--anonymous-auth=false',
    '--authorization-mode=RBAC',
    // Its effect is a taint on every new node until a kubelet reports; there is no kubelet.
    '--disable-admission-plugins=TaintNodesByCondition',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-signing-key-file=${file('service-account.key')}`,
    `--service-account-key-file=${file('service-account.key')}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    '--endpoint-reconciler-type=none',
    ...(auditLogOfServer === undefined
      ? []
      : [`--audit-log-path=${auditLogOfServer}`, `--audit-policy-file=${file('audit-policy.json')}`]),
  ];
  const startApiServer = async (): Promise<void> => {
    await waitReady(await start('kube-apiserver', apiServerArgs(apiPort, auditLogFile)));
  };

  const adminToken = newToken();
  const access = async (): Promise<ApiAccess> => ({ url, ca: await serverCa(), token: adminToken });
  const serverCa = async (): Promise<string> => await readFile(file('certs/apiserver.crt'), 'utf8');

  const serverReady = async (of: string = url): Promise<boolean> => {
    try {
      return (await apiRequest({ ...(await access()), url: of }, 'GET', '/readyz', { timeoutMs: 2000 })).status === 200;
    } catch {
      return false; // no certificate yet, or not listening yet
    }
  };

  const waitReady = async (component: Component, of: string = url): Promise<void> => {
    await waitFor(() => serverReady(of), `${component.name} is not ready`, component);
  };

  const waitFor = async (done: () => Promise<boolean>, failure: string, component: Component): Promise<void> => {
    const deadline = performance.now() + startTimeoutMs;
    while (!(await done())) {
      if (!component.running()) throw new Error(`${component.name} ended:\n${await logTail(component)}`);
      if (performance.now() > deadline) {
        throw new Error(`${failure} after ${startTimeoutMs} ms:\n${await logTail(component)}`);
      }
      await delay(50);
    }
  };

  const startControllerManager = async (): Promise<void> => {
    const { knowsController } = await programHelp(programs.binDir, 'kube-controller-manager');
    await start('kube-controller-manager', [
      `--kubeconfig=${file('kube-controller-manager.kubeconfig')}`,
      `--controllers=${controllers.filter(knowsController).join(',')}`,
      `--service-account-private-key-file=${file('service-account.key')}`,
      '--enable-hostpath-provisioner=false',
      '--leader-elect=false',
      '--secure-port=0',
    ]);
  };

  const startScheduler = async (): Promise<void> => {
    await start('kube-scheduler', [
      `--kubeconfig=${file('kube-scheduler.kubeconfig')}`,
      '--leader-elect=false',
      '--secure-port=0',
    ]);
  };

  /** The first thing seen of a working controller manager is the service account of the namespace `default`. */
  const waitControllersReady = async (): Promise<void> => {
    const component = running.get('kube-controller-manager');
    if (component === undefined) throw new Error('kube-controller-manager was never started');
    const path = '/api/v1/namespaces/default/serviceaccounts/default';
    const made = async (): Promise<boolean> => (await apiRequest(await access(), 'GET', path)).status === 200;
    await waitFor(made, 'kube-controller-manager has done nothing', component);
  };

  const addUser = (name: string): string => {
    const token = newToken();
    tokens.set(name, token);
    return token;
  };

  const stop = async (): Promise<void> => {
    await Promise.all([...running.values(), ...further].map((component) => component.stop()));
    removeFolder();
    process.off('exit', removeFolder);
  };

  const writeFiles = async (): Promise<void> => {
    // The two components are masters, but under names of their own, so that the audit log tells them apart.
    const rows = [
      [adminToken, 'admin', 'system:masters'],
      [addUser('system:kube-controller-manager'), 'system:kube-controller-manager', 'system:masters'],
      [addUser('system:kube-scheduler'), 'system:kube-scheduler', 'system:masters'],
      ...users.map(({ name, groups = [] }) => [addUser(name), name, groups.join(',')]),
    ];
    const csv = rows.map(
      ([token, name, groups]) => `${token ?? ''},"${name ?? ''}","${name ?? ''}","${groups ?? ''}"\n`,
    );
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const mode = 0o600;
    await writeFile(file('tokens.csv'), csv.join(''), { mode });
    await writeFile(file('service-account.key'), privateKey.export({ type: 'sec1', format: 'pem' }), { mode });
    await writeFile(file('audit-policy.json'), JSON.stringify(auditPolicy(auditLevel)));
  };

  const kubeconfig = async (user: string, token: string, namespace?: string): Promise<string> => {
    const path = file(`${user.replaceAll(/[^\w.-]/g, '-').replace(/^system-(?=kube-)/, '')}.kubeconfig`);
    await writeKubeconfig(path, {
      url,
      ca: await serverCa(),
      token,
      ...(namespace === undefined ? {} : { namespace }),
    });
    return path;
  };

  const kubeconfigFor = async (user: string): Promise<string> => {
    const known = tokens.get(user);
    if (known !== undefined) return await kubeconfig(user, known);
    const [, namespace, name] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user) ?? [];
    if (namespace === undefined || name === undefined) {
      throw new Error(`${user} is neither a service account nor among the users of this control plane`);
    }
    return await kubeconfig(user, await requestToken(await access(), namespace, name), namespace);
  };

  const kubectl = async (args: string[], { input }: { input?: string } = {}): Promise<string> => {
    const base = [`--kubeconfig=${file('admin.kubeconfig')}`, `--cache-dir=${file('kubectl-cache')}`];
    const run = promisify(execFile)(join(binDir, 'kubectl'), [...base, ...args], { maxBuffer: 2 ** 28 });
    run.child.stdin?.end(input);
    return (await run).stdout;
  };

  try {
    await writeFiles();
    await startEtcd(); // the API server waits for it by itself
    await startApiServer();
    const adminKubeconfig = await kubeconfig('admin', adminToken);
    await kubeconfigFor('system:kube-controller-manager');
    await kubeconfigFor('system:kube-scheduler');
    await Promise.all([startControllerManager(), startScheduler()]);
    await waitControllersReady();
    return {
      url,
      etcdUrl: `http://127.0.0.1:${etcdPort}`,
      ca: await serverCa(),
      adminToken,
      adminKubeconfig,
      folder,
      binDir,
      auditLogFile,
      kubeconfigFor,
      kubectl,
      killApiServer: () => end('kube-apiserver'),
      signalApiServer: (signal) => void process.kill(running.get('kube-apiserver')?.pid ?? NaN, signal),
      async restartApiServer() {
        await end('kube-apiserver');
        await startApiServer();
      },
      async addApiServer(beside) {
        const port = await freePort();
        const name = `kube-apiserver-${further.length + 2}`;
        const log = auditLog ? join(logDir, `${name}-audit.log`) : undefined;
        const component = await launch('kube-apiserver', apiServerArgs(port, log), beside, name);
        further.push(component);
        const here = `https://127.0.0.1:${port}`;
        await waitReady(component, here);
        const path = file(`admin-${name}.kubeconfig`);
        await writeKubeconfig(path, { url: here, ca: await serverCa(), token: adminToken });
        return { url: here, adminKubeconfig: path, auditLogFile: log };
      },
      async replacePrograms(next) {
        await Promise.all([end('kube-controller-manager'), end('kube-scheduler'), end('kube-apiserver')]);
        programs = next;
        await startApiServer();
        await Promise.all([startControllerManager(), startScheduler()]);
      },
      async backUpEtcd() {
        await running.get('etcd')?.stop('SIGTERM'); // which writes everything down first
        await rm(file('etcd-backup'), { recursive: true, force: true });
        await cp(file('etcd'), file('etcd-backup'), { recursive: true });
        await startEtcd();
        await waitFor(() => serverReady(), 'the API server has lost etcd', running.get('kube-apiserver')!);
      },
      async restoreEtcd() {
        await Promise.all(
          (['kube-controller-manager', 'kube-scheduler', 'kube-apiserver', 'etcd'] as const).map((name) => end(name)),
        );
        await rm(file('etcd'), { recursive: true });
        await cp(file('etcd-backup'), file('etcd'), { recursive: true });
        await startEtcd();
        await startApiServer();
        await Promise.all([startControllerManager(), startScheduler()]);
      },
      stopControllerManager: () => end('kube-controller-manager'),
      async startControllerManager() {
        await end('kube-controller-manager');
        await startControllerManager();
      },
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function newToken(): string {
  return randomBytes(24).toString('base64url');
}

/** A token for a service account (Kubernetes page "Managing Service Accounts", TokenRequest), valid for a day. */
async function requestToken(access: ApiAccess, namespace: string, name: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 24 * 3600 },
  };
  const response = await apiRequest(access, 'POST', path, { body });
  if (response.status !== 201) throw new Error(`no token for ${namespace}/${name}: ${response.body}`);
  return (JSON.parse(response.body) as { status: { token: string } }).status.token;
}
