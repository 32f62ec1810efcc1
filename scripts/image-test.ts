/**
 * `npm run image:test`: builds the targets of the Dockerfile and lets the images of sidecar and driver work together as the Pod of
 * deploy/base/deployment.yaml does, with leader election: as its user, root file system read-only, within a memory limit,
 * on the sandbox's API over TLS with the files of a service account. A claim becomes Bound, the probes respond, SIGTERM
 * ends both in order. Then the same as root, beside a driver whose socket is root's, and with a kubeconfig that names no
 * certificate authority: that of the image's system store counts. Then the image of nfs-subdir, on a folder for an export, and
 * that of nfs-provisioner, whose ganesha exports a folder; `--only nfs-provisioner` tests this one alone.
 *
 * Docker is taken where an engine runs, else buildah, which needs no registry, and for nfs-provisioner mmdebstrap. Where they
 * are missing: with `--install` or CI=true they are installed by apt-get. Without mmdebstrap it says that nfs-provisioner was
 * not tested. The exit code is 77 where no image can be built at all: nothing to build
 * it with, or no permission to mount; 1 when something is wrong with the image.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import tls from 'node:tls';
import { KubeConfig, loadYaml, type V1Container, type V1Deployment } from '@kubernetes/client-node';
import { bundled } from '../test/support/program-file.ts';
import { freePort } from '../test/support/free-ports.ts';
import { startAnnounced, type StartedProcess } from '../test/support/started-process.ts';
import { startBuildah } from './image/buildah.ts';
import { startDocker } from './image/docker.ts';
import type { ContainerOptions, Engine, Image } from './image/engine.ts';
import { runTool } from './image/run-tool.ts';
import { type ApiObject, KubeApi } from './kube-api.ts';
import { scriptCommand } from './script-command.ts';

const root = path.join(import.meta.dirname, '..');
const installBuildah = 'apt-get update && apt-get install --yes --no-install-recommends buildah mmdebstrap';
const driverName = 'hostpath.csi.k8s.io';
const memoryBytes = 256 * 2 ** 20;
const patienceMs = 60_000;
/** Where a Pod finds its service account (Kubernetes page "Accessing the Kubernetes API from a Pod"). */
const accountFolder = '/var/run/secrets/kubernetes.io/serviceaccount';
/** Where the base image has the certificate authorities that programs trust. */
const systemStore = '/etc/ssl/certs';
/** Every file that an image may add to its base, besides its program. */
const commonFiles = ['/licenses/LICENSE', '/licenses/THIRD-PARTY-LICENSES.txt'];
/** The program of the sidecar's image. */
const sidecarFiles = [
  '/csi-provisioner.bundle.cjs',
  '/csi-provisioner.bundle.cjs.cache',
  '/csi-provisioner-traces.mjs',
  '/csi-provisioner.cdx.json',
  '/csi-provisioner.mjs',
];
/** That of nfs-subdir. */
const nfsSubdirFiles = ['/nfs-subdir-external-provisioner.cdx.json', '/nfs-subdir-external-provisioner.mjs'];

const options = scriptCommand(
  'npm run image:test --',
  'Builds the images and runs them together, with Docker or buildah.',
)
  .option('--install', 'what is missing, on Debian; by default with CI=true')
  .option('--only <IMAGE>', 'tests this image alone, such as nfs-provisioner')
  .parse()
  .opts<{ install?: true; only?: string }>();

async function main(): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), 'image-test-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o755); // the containers' user passes through
  const startedMs = performance.now();
  const dockerfile = await readFile(path.join(root, 'Dockerfile'), 'utf8');
  assert.doesNotMatch(dockerfile, /^ARG RUNTIME_IMAGE=.*nonroot|^USER /m, 'the user is the manifests’ to set');
  const engine = cleanup.use(await findEngine(folder));
  console.log(`Building with ${engine.name}`);
  if (options.only !== 'nfs-provisioner') await testSidecar(engine, folder, startedMs);
  await runNfs(engine, await makeFolder(folder, 'nfs', 0o755));
}

async function testSidecar(engine: Engine, folder: string, startedMs: number): Promise<void> {
  const sidecar = await engine.build('sidecar');
  const driver = await engine.build('hostpath-driver');
  const nfsSubdir = await engine.build('nfs-subdir');
  console.log(`Built the images in ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  await checkContents(engine, sidecar, { title: 'Sidecar', program: sidecarFiles });
  await checkContents(engine, nfsSubdir, { title: 'nfs-subdir', program: nfsSubdirFiles });
  for (const image of [sidecar, driver, nfsSubdir]) checkConfig(image);
  const flags = sidecar.config.entrypoint.slice(1, -1);
  assert.deepEqual(bundled.split(' ').slice(1, -1), flags, 'benchmarks measure with the flags of the image');
  // the library leaves the trust of its process alone, while the sidecar extends it where needed
  const ownFlags = nfsSubdir.config.entrypoint.slice(1, -1).filter((flag) => flag !== '--use-system-ca');
  assert.deepEqual(ownFlags, flags, 'every program of ours runs with them');
  const images = { engine, sidecar, driver };
  await runPod(images, {
    folder: await makeFolder(folder, 'pod', 0o755),
    user: '65532:65532',
    hasServiceAccount: true,
  });
  await runPod(images, { folder: await makeFolder(folder, 'root', 0o755), user: '0:0', hasServiceAccount: false });
  await runNfsSubdir(nfsSubdir, await makeFolder(folder, 'nfs-subdir', 0o755));
}

interface Images {
  readonly engine: Engine;
  readonly sidecar: Image;
  readonly driver: Image;
}

interface PodOptions {
  /** For its files; empty. */
  readonly folder: string;
  /** Of both containers, as `USER:GROUP`. */
  readonly user: string;
  /** Otherwise the sidecar gets a kubeconfig without certificate authority, which the image's system store has. */
  readonly hasServiceAccount: boolean;
}

/** @throws when there is no engine and none may be installed. */
async function findEngine(folder: string): Promise<Engine> {
  if (await works('docker', ['info', '--format', '{{.ServerVersion}}'])) {
    const dockerfile = await readFile(path.join(root, 'Dockerfile'), 'utf8');
    return startDocker(root, /^ARG RUNTIME_IMAGE=(\S+)$/m.exec(dockerfile)?.[1] ?? '');
  }
  const hasBuildah = await works('buildah', ['--version']);
  if (options.install === true || process.env['CI'] === 'true') {
    if (!hasBuildah || !(await works('mmdebstrap', ['--version']))) {
      await runTool('sh', ['-c', installBuildah], { loud: true }).catch((cause: unknown) => {
        if (!hasBuildah) throw new NoEngine(`buildah cannot be installed: ${String(cause)}`);
        console.error(`mmdebstrap cannot be installed: ${String(cause)}`);
      });
    }
  } else if (!hasBuildah) {
    throw new NoEngine(`Neither a running Docker engine nor buildah is here. To install buildah:\n  ${installBuildah}`);
  }
  if (process.getuid?.() !== 0) throw new NoEngine('Without a Docker engine this needs root, to mount and chroot');
  if (!(await works('unshare', ['--mount', '--propagation', 'private', 'mount', '-t', 'proc', 'proc', folder]))) {
    throw new NoEngine('Without a Docker engine this needs the permission to mount, which even root lacks here');
  }
  return startBuildah(folder, root);
}

async function works(program: string, args: string[]): Promise<boolean> {
  try {
    await runTool(program, args);
    return true;
  } catch {
    return false;
  }
}

async function checkContents(
  engine: Engine,
  image: Image,
  { title, program }: { title: string; program: string[] },
): Promise<void> {
  const [base, files] = [await engine.baseFiles(), await image.files()];
  const added = [...files].filter(([file]) => !base.has(file) && !/^\/(etc|run)\/|^\/\.dockerenv$/.test(file));
  assert.deepEqual(added.map(([file]) => file).toSorted(), [...commonFiles, ...program].toSorted());
  const megabytes = (sizes: Iterable<number>): string => ([...sizes].reduce((a, b) => a + b, 0) / 1e6).toFixed(1);
  console.log(`${title} image: ${megabytes(files.values())} MB of files, unpacked`);
  console.log(`  ${megabytes(base.values())} MB base image`);
  for (const [file, size] of added) console.log(`  ${(size / 1e6).toFixed(1)} MB ${file}`);
}

function checkConfig({ config }: Image): void {
  assert.match(config.user, /^0?$/, 'no user of its own: as root it can be run beside every driver');
  assert.equal(config.hasHealthcheck, false);
  for (const label of ['title', 'description', 'licenses', 'version', 'revision']) {
    assert.ok(config.labels[`org.opencontainers.image.${label}`], `label ${label}`);
  }
}

/** Two containers that share a folder, as in the Pod, with the arguments of the Deployment. */
async function runPod({ engine, sidecar, driver }: Images, options: PodOptions): Promise<void> {
  const { folder, user, hasServiceAccount } = options;
  await using cleanup = new AsyncDisposableStack();
  const shared = await sharedFolders(folder, user);
  const server = await startApi(folder, shared);
  cleanup.defer(() => server.process.stop());
  const deployment = loadYaml<V1Deployment>(await readFile(path.join(root, 'deploy/base/deployment.yaml'), 'utf8'));
  const containers = deployment.spec?.template.spec?.containers ?? [];
  const port = await freePort();
  const start = async (
    name: string,
    image: Image,
    { args = [], ...options }: Omit<ContainerOptions, 'args' | 'user'> & { args?: string[] },
  ): Promise<StartedProcess> => {
    const started = await image.start({ ...options, user, args: [...argsOf(containers, name, port), ...args] });
    cleanup.defer(() => started.stop('SIGKILL'));
    return started;
  };
  const hostpath = await start('hostpath-driver', driver, {
    environment: {},
    mounts: { '/csi': shared.csi, '/state': shared.state },
  });
  // With leader election, as deploy/components/leader-election has it.
  const provisioner = await start('csi-provisioner', sidecar, {
    args: ['--leader-election', ...(hasServiceAccount ? [] : ['--kubeconfig=/config/kubeconfig'])],
    environment: { ...(hasServiceAccount && server.environment), POD_NAMESPACE: 'default' },
    memoryBytes,
    mounts: {
      '/csi': shared.csi,
      ...(hasServiceAccount
        ? { [accountFolder]: shared.account }
        : { '/config': shared.config, [systemStore]: shared.authorities }),
    },
  });
  try {
    await claimBecomesBound(new KubeApi(server.url));
    const socket = await stat(path.join(shared.csi, 'csi.sock'));
    assert.equal(`${socket.uid}:${socket.gid}`, user);
    assert.equal(socket.mode & 0o777, 0o755, 'only its owner may connect to the socket');
    for (const probe of ['healthz/leader-election', 'readyz']) {
      assert.equal((await fetch(`http://127.0.0.1:${port}/${probe}`)).status, 200, probe);
    }
    await checkProcess(provisioner.pid, folder, user);
    if (engine.limitsMemory) await checkHeapLimit(`http://127.0.0.1:${port}/metrics`);
    else console.log('No permission to limit memory here: that the heap follows the limit was NOT tested');
    // a leader that was terminated, had nothing under way and released its lease
    await endsWith('exit code 0', 'sidecar', provisioner);
    assert.match(provisioner.log(), /"Lease released"/);
    await endsWith('exit code 0', 'driver', hostpath);
  } catch (error) {
    console.error(`Sidecar:\n${provisioner.log()}\nDriver:\n${hostpath.log()}`);
    throw error;
  }
}

/** As its Deployment runs it: as root, with leader election, the export a mounted folder. */
async function runNfsSubdir(image: Image, folder: string): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const shared = await sharedFolders(folder, '0:0');
  const server = await startApi(folder, shared);
  cleanup.defer(() => server.process.stop());
  const provisioner = await image.start({
    args: [],
    user: '0:0',
    environment: {
      ...server.environment,
      NFS_SERVER: 'nfs.example.com',
      NFS_PATH: '/exports',
      PROVISIONER_NAME: driverName,
      POD_NAMESPACE: 'default',
    },
    mounts: { [accountFolder]: shared.account, '/persistentvolumes': shared.state },
    memoryBytes,
  });
  cleanup.defer(() => provisioner.stop('SIGKILL'));
  try {
    await claimBecomesBound(new KubeApi(server.url));
    const volumes = (await readdir(shared.state)).filter((name) => !name.startsWith('.'));
    assert.equal(volumes.length, 1, 'a directory of the export');
    await endsWith('exit code 0', 'nfs-subdir', provisioner);
  } catch (error) {
    console.error(`nfs-subdir:\n${provisioner.log()}`);
    throw error;
  }
}

/** The NFS provisioner with the ganesha of its image, on one port of this machine. */
async function runNfs(engine: Engine, folder: string): Promise<void> {
  const obstacle = await engine.obstacle('nfs-provisioner');
  if (obstacle !== undefined) {
    console.log(`*** THE IMAGE OF nfs-provisioner WAS NOT TESTED: ${obstacle} ***`);
    return;
  }
  const image = await engine.build('nfs-provisioner');
  checkConfig(image);
  await using cleanup = new AsyncDisposableStack();
  const shared = await sharedFolders(folder, '0:0');
  const server = await startApi(folder, shared);
  cleanup.defer(() => server.process.stop());
  const exports = await makeFolder(folder, 'export', 0o755);
  const run = await makeFolder(folder, 'run', 0o755);
  const temporary = await makeFolder(folder, 'tmp', 0o1777);
  const core = `NFS_Port = ${await freePort()}; Bind_addr = 127.0.0.1; Protocols = 4; MNT_Port = 20048;`;
  const quiet = 'Enable_UDP = false; Enable_NLM = false; Enable_RQUOTA = false;';
  await writeFile(path.join(exports, 'vfs.conf'), `NFS_CORE_PARAM { ${core} ${quiet} }\n`);
  const provisioner = await image.start({
    user: '0:0',
    capabilities: ['DAC_READ_SEARCH', 'CHOWN', 'FOWNER', 'DAC_OVERRIDE', 'FSETID', 'SETUID', 'SETGID'],
    args: [
      ...[`-provisioner=${driverName}`, '-nfsv3=false', '-grace-period=0', '-v=2'],
      ...['-kubeconfig=/config/kubeconfig', '-server-hostname=127.0.0.1'],
    ],
    environment: {},
    mounts: {
      ...{ '/export': exports, '/run': run, '/tmp': temporary },
      ...{ '/config': shared.config, [systemStore]: shared.authorities },
    },
  });
  cleanup.defer(() => provisioner.stop('SIGKILL'));
  try {
    await claimBecomesBound(new KubeApi(server.url));
    assert.match(provisioner.log(), /All exports are served/);
    const volumes = (await readdir(exports)).filter((name) => name.startsWith('pvc-'));
    assert.equal(volumes.length, 1);
    await endsWith('exit code 0', 'NFS provisioner', provisioner);
  } catch (error) {
    console.error(`NFS provisioner:\n${provisioner.log()}`);
    throw error;
  }
}

async function endsWith(code: string, name: string, container: StartedProcess): Promise<void> {
  const fromMs = performance.now();
  await container.stop('SIGTERM');
  assert.equal(await container.ending(), code, `the ${name} after SIGTERM`);
  console.log(`The ${name} ended with ${code} ${Math.round(performance.now() - fromMs)} ms after SIGTERM`);
}

async function makeFolder(parent: string, name: string, mode: number): Promise<string> {
  const made = path.join(parent, name);
  await mkdir(made);
  await chmod(made, mode);
  return made;
}

interface SharedFolders {
  readonly csi: string;
  readonly state: string;
  readonly account: string;
  readonly config: string;
  readonly authorities: string;
}

/** Folders for the containers: the socket, the driver's state, and what the sidecar needs to reach the API. */
async function sharedFolders(folder: string, user: string): Promise<SharedFolders> {
  const writable = user === '0:0' ? 0o755 : 0o777;
  return {
    csi: await makeFolder(folder, 'csi', writable),
    state: await makeFolder(folder, 'state', writable),
    account: await makeFolder(folder, 'account', 0o755),
    config: await makeFolder(folder, 'config', 0o755),
    authorities: await makeFolder(folder, 'authorities', 0o755),
  };
}

/** The sandbox with TLS, and two ways to reach it: what the kubelet gives a Pod, and a kubeconfig. */
async function startApi(folder: string, { account, config: configFolder, authorities }: SharedFolders) {
  const { process: server, announced } = await startAnnounced<{ url: string; kubeconfig: string }>({
    program: process.execPath,
    args: [path.join(root, 'sandbox/main.ts'), '--tls', `--kubeconfig=${path.join(folder, 'kubeconfig')}`],
  });
  const config = new KubeConfig();
  config.loadFromFile(announced.kubeconfig);
  const authority = Buffer.from(config.getCurrentCluster()?.caData ?? '', 'base64').toString();
  await writeFile(path.join(account, 'ca.crt'), authority);
  const token = config.getCurrentUser()?.token ?? randomUUID();
  await writeFile(path.join(account, 'token'), token);
  await writeFile(path.join(configFolder, 'kubeconfig'), kubeconfig(announced.url, token));
  await writeFile(path.join(authorities, 'ca-certificates.crt'), authority);
  tls.setDefaultCACertificates([authority]); // for our own requests
  const { hostname, port } = new URL(announced.url);
  const environment = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
  return { process: server, url: announced.url, environment };
}

/** A kubeconfig that leaves it to the system whom to trust. */
function kubeconfig(server: string, token: string): string {
  const name = 'image-test';
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  });
}

/** The Deployment's arguments; only the address to listen on is kept to this machine. */
function argsOf(containers: readonly V1Container[], name: string, port: number): string[] {
  const args = containers.find((container) => container.name === name)?.args;
  if (args === undefined) throw new Error(`the Deployment has no container ${name} with arguments`);
  return args.map((arg) => arg.replace(/^(--http-endpoint=):\d+$/, `$1127.0.0.1:${port}`));
}

async function claimBecomesBound(api: KubeApi): Promise<void> {
  await api.create('storageclasses', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'image-test' },
    provisioner: driverName,
  });
  await api.create('persistentvolumeclaims', {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'claim', namespace: 'default' },
    spec: {
      storageClassName: 'image-test',
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Mi' } },
    },
  });
  const fromMs = performance.now();
  for (;;) {
    const claim = await api.get<ApiObject & { status?: { phase?: string } }>(
      'persistentvolumeclaims',
      'claim',
      'default',
    );
    if (claim?.status?.phase === 'Bound') break;
    if (performance.now() > fromMs + patienceMs) throw new Error(`the claim is ${claim?.status?.phase ?? 'gone'}`);
    await delay(50);
  }
  console.log(`The claim is Bound ${Math.round(performance.now() - fromMs)} ms after it was filed`);
}

/** Where the container is a process of ours, what the kernel says of it. */
async function checkProcess(pid: number, folder: string, user: string): Promise<void> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  if (!status.startsWith('Name:\tMainThread') && !status.startsWith('Name:\tnode')) return; // docker's own client
  for (const [index, field] of ['Uid', 'Gid'].entries()) {
    const id = user.split(':')[index];
    assert.match(status, new RegExp(`^${field}:\t${id}\t${id}\t${id}\t${id}$`, 'm'));
  }
  // chroot cannot take capabilities from root; Docker does.
  if (user !== '0:0') assert.match(status, /^CapEff:\t0+$/m);
  const mounts = (await readFile(`/proc/${pid}/mountinfo`, 'utf8')).split('\n').map((line) => line.split(' '));
  const rootMount = mounts.findLast((fields) => fields[4] === '/');
  assert.match(rootMount?.[5] ?? '', /^ro\b/, 'the root file system is read-only');
  assert.ok(!mounts.some((fields) => fields[4]?.startsWith(folder)), 'nothing of this machine is visible');
  const megabytes = (field: string): string =>
    ((Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1]) * 1024) / 1e6).toFixed(0);
  console.log(
    `The sidecar runs as user ${user} on a read-only root, ${megabytes('VmRSS')} MB resident, ` +
      `${megabytes('RssFile')} MB of it files such as Node.js itself`,
  );
}

/** Node.js by itself would take more than this container has. */
async function checkHeapLimit(url: string): Promise<void> {
  const page = await (await fetch(url)).text();
  const limit = Number(/^nodejs_heap_size_limit_bytes (\S+)$/m.exec(page)?.[1]);
  const share = limit / memoryBytes;
  console.log(`The heap may take ${(100 * share).toFixed(0)} % of the container's memory`);
  assert.ok(share > 0.65 && share < 0.8, `the heap's limit is ${limit}, the container's ${memoryBytes}`);
}

/** No image can be built on this machine. Its message says all there is to say: no stack. */
class NoEngine extends Error {}

try {
  await main();
} catch (error) {
  console.error(error instanceof NoEngine ? error.message : error);
  process.exitCode = error instanceof NoEngine ? 77 : 1;
}
