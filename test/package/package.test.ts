/** What somebody gets who installs the package: packed, installed and used in an empty project. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import * as library from '../../src/index.ts';
import * as parts from '../../src/kube.ts';
import * as testing from '../../src/testing/kit.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { eventually } from '../support/eventually.ts';
import { anchorsOf } from '../support/markdown-anchors.ts';
import { startProcess } from '../support/started-process.ts';
import { claimingVersion, runNode } from '../integration/cli/program-run.ts';
import { startSidecar } from '../integration/cli/sidecar-process.ts';
import { RawGrpcServer } from '../integration/csi/raw-grpc-server.ts';

const root = path.join(import.meta.dirname, '../..');
const examples = path.join(root, 'provisioners/hostpath-provisioner');
const exec = promisify(execFile);

/** With this Node in front of any other. */
const ownPath = `${path.dirname(process.execPath)}${path.delimiter}${process.env['PATH'] ?? ''}`;

/** Runs a command. @param options.PATH - where it finds further commands. */
async function run(cwd: string | { cwd: string; PATH: string }, program: string, ...args: string[]): Promise<string> {
  const options = typeof cwd === 'string' ? { cwd, PATH: ownPath } : cwd;
  const env = { ...process.env, PATH: options.PATH };
  try {
    const { stdout } = await exec(program, args, { cwd: options.cwd, env, maxBuffer: 2 ** 26 });
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args.join(' ')}\n${stdout}${stderr}`, { cause: error });
  }
}

/** A folder with Node.js, npm and a shell: what a machine has at least, and no git. */
async function leastCommands(folder: string): Promise<string> {
  await mkdir(folder);
  const npm = realpathSync((await run(folder, 'sh', '-c', 'command -v npm')).trim());
  const commands = { node: process.execPath, npm, npx: path.join(path.dirname(npm), 'npx-cli.js'), sh: '/bin/sh' };
  for (const [name, file] of Object.entries(commands)) await symlink(file, path.join(folder, name));
  return folder;
}

/** Every Node.js of this machine that is too old for us. */
function olderNodes(): string[] {
  const folders = ['/usr/bin', '/usr/local/bin', ...(process.env['PATH'] ?? '').split(path.delimiter)];
  const files = new Set(folders.map((folder) => path.join(folder, 'node')).filter((file) => existsSync(file)));
  return [...new Set([...files].map((file) => realpathSync(file)))].filter((file) => {
    const version = /^v(\d+)/.exec(spawnSync(file, ['--version'], { encoding: 'utf8' }).stdout);
    return version !== null && Number(version[1]) < 24;
  });
}

/** The whole library in the hands of a type checker, and what it gives at run time. */
const namesProgram = `import * as library from 'csi-provisioner';
import * as parts from 'csi-provisioner/kube';
import * as testing from 'csi-provisioner/testing';
export type Everything = [typeof library, typeof parts, typeof testing];
console.log(JSON.stringify([library, parts, testing].map((entry) => Object.keys(entry))));
`;

const strictest = {
  target: 'esnext',
  module: 'nodenext',
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  verbatimModuleSyntax: true,
  skipLibCheck: false,
  outDir: 'out',
  typeRoots: [path.join(root, 'node_modules/@types')],
  types: ['node'],
};

describe('the package', () => {
  let project: string;
  let files: string[];
  let withoutGit: string;

  before(async () => {
    project = await mkdtemp(path.join(tmpdir(), 'package-'));
    await run(root, process.execPath, 'scripts/npm-package.ts', '--out', project);
    const [tarball = ''] = (await readdir(project)).filter((name) => name.endsWith('.tgz'));
    const listed = (await run(project, 'tar', '--list', '--file', tarball)).trimEnd().split('\n');
    files = listed.map((file) => file.replace(/^package\//, '')).sort();
    const install = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
    await writeFile(path.join(project, 'package.json'), JSON.stringify({ type: 'module' }));
    withoutGit = await leastCommands(path.join(project, 'bin'));
    await run({ cwd: project, PATH: withoutGit }, 'npm', ...install, `./${tarball}`);
    await mkdir(path.join(project, 'src'));
    for (const name of ['main.ts', 'replicated.ts']) {
      await cp(path.join(examples, name), path.join(project, 'src', name));
    }
    await writeFile(path.join(project, 'src/names.ts'), namesProgram);
  });
  after(() => rm(project, { recursive: true, force: true }));

  test('holds the sidecar, the library, the sandbox, the provisioners and nothing else', async () => {
    assert.deepEqual(
      files.filter((file) => !file.startsWith('dist/lib/') && !file.startsWith('docs/')),
      [
        'CHANGELOG.md',
        'LICENSE',
        'README.md',
        'SECURITY.md',
        'dist/THIRD-PARTY-LICENSES.txt',
        'dist/csi-provisioner-traces.mjs',
        'dist/csi-provisioner.bundle.cjs',
        'dist/csi-provisioner.bundle.cjs.map',
        'dist/csi-provisioner.js',
        'dist/csi-sandbox.js',
        'dist/nfs-provisioner.js',
        'dist/nfs-subdir-external-provisioner.js',
        'package.json',
      ],
    );
    for (const file of files.filter((name) => /^dist\/[\w-]+\.js$/.test(name))) {
      const start = (await readFile(path.join(project, 'node_modules/csi-provisioner', file), 'utf8')).slice(0, 3000);
      assert.match(start, /process\.on\(["']SIGUSR1["']/, `${file} leaves SIGUSR1 to the debugger`);
    }
    const library = files.filter((file) => file.startsWith('dist/lib/'));
    assert.ok(library.includes('dist/lib/index.js') && library.includes('dist/lib/index.d.ts'));
    for (const file of library)
      assert.match(
        file,
        /^dist\/lib\/(index|kube|(base|diagnostics|explain|explain\/causes|kube|kube\/(cache|client|credentials|election|events|protobuf|queue)|provision|provision\/(cache|claim|intents|intent-journal|revoke|volume)|run|testing)\/[a-z-]+)\.(js|d\.ts)$/,
      );
  });

  test('brings its pages, which link to what is there or to the repository', async () => {
    const inPackage = (file: string): string => path.join(project, 'node_modules/csi-provisioner', file);
    const manifest = JSON.parse(await readFile(inPackage('package.json'), 'utf8')) as {
      version: string;
      repository: { url: string };
    };
    const home = `${manifest.repository.url.replace(/^git\+|\.git$/g, '')}/blob/v${manifest.version}`;
    const pages = files.filter((file) => file.endsWith('.md'));
    assert.deepEqual(
      pages.filter((file) => file.startsWith('docs/')).map((file) => file.slice('docs/'.length)),
      (await readdir(path.join(root, 'docs'))).filter((file) => file.endsWith('.md')).sort(),
    );
    const toRepository: string[] = [];
    for (const page of pages) {
      const text = await readFile(inPackage(page), 'utf8');
      for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (target.startsWith(`${home}/`)) toRepository.push(target.slice(home.length + 1));
        if (/^https?:/.test(target)) continue;
        const [file = '', anchor] = target.split('#');
        const linked = file === '' ? page : path.join(path.dirname(page), file);
        assert.ok(existsSync(inPackage(linked)), `${page}: ${target}`);
        const headings = anchor === undefined ? undefined : anchorsOf(await readFile(inPackage(linked), 'utf8'));
        assert.ok(headings?.has(anchor ?? '') ?? true, `${page}: ${target}`);
      }
    }
    assert.ok(toRepository.includes('deploy/base/rbac.yaml'));
    for (const target of toRepository) assert.ok(existsSync(path.join(root, target.replace(/#.*/, ''))), target);
  });

  test('says where it comes from, and depends on what its library imports alone', async () => {
    const text = await readFile(path.join(project, 'node_modules/csi-provisioner/package.json'), 'utf8');
    const manifest = JSON.parse(text) as Record<string, unknown> & { dependencies: object };
    for (const field of ['repository', 'homepage', 'bugs', 'license', 'engines']) assert.ok(manifest[field], field);
    for (const field of ['scripts', 'devDependencies', 'allowScripts']) assert.equal(manifest[field], undefined, field);
    const { dependencies } = manifest;
    assert.deepEqual(Object.keys(dependencies), ['js-yaml', 'prom-client', 'undici', 'uuid']);
  });

  test('has nfs-subdir-external-provisioner, which says what it lacks', async () => {
    const program = await startProcess({
      program: path.join(project, 'node_modules/.bin/nfs-subdir-external-provisioner'),
      args: [],
      env: {
        PATH: `${path.dirname(process.execPath)}${path.delimiter}${process.env['PATH'] ?? ''}`,
        NFS_SERVER: 'srv',
      },
    });
    assert.equal(await program.ending(), 'exit code 1');
    assert.match(program.log(), /error NFS_PATH not set\n$/);
  });

  test('imports no package that it does not declare', async () => {
    const text = await readFile(path.join(project, 'node_modules/csi-provisioner/package.json'), 'utf8');
    const manifest = JSON.parse(text) as { dependencies: Record<string, string> };
    const imported = new Set<string>();
    for (const file of files.filter((name) => name.startsWith('dist/lib/'))) {
      const text = await readFile(path.join(project, 'node_modules/csi-provisioner', file), 'utf8');
      for (const [, name = ''] of text.matchAll(/\bfrom '([^.'][^']*)'/g)) imported.add(name);
    }
    const packages = [...imported].filter((name) => !name.startsWith('node:'));
    assert.ok(packages.includes('undici'), 'imports are found');
    for (const name of packages) assert.ok(name in manifest.dependencies, name);
    assert.ok(!packages.some((name) => name.startsWith('@grpc/')), 'the library knows no gRPC');
  });

  test('has a sidecar to which the texts of a driver arrive whole', async () => {
    const text = 'Exception calling application: ';
    const status = { 'grpc-status': '2', 'grpc-message': text };
    await using driver = await RawGrpcServer.start(({ stream }) =>
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...status }, { endStream: true }),
    );
    const sidecar = await startProcess({
      program: process.execPath,
      args: [
        path.join(project, 'node_modules/csi-provisioner/dist/csi-provisioner.js'),
        `--csi-address=${driver.socketPath}`,
        '--master=http://127.0.0.1:1',
      ],
      env: { KUBECONFIG: undefined },
    });
    assert.equal(await sidecar.ending(), 'exit code 1');
    assert.ok(
      sidecar.log().includes(`CSI driver probe failed: rpc error: code = Unknown desc = ${text}`),
      sidecar.log(),
    );
  });

  test('has a sidecar that reports an uncaught error without the code of its bundle', async () => {
    const breaking = `Object.defineProperty(process,'stdin',{get(){throw new Error('broken for a test')}})`;
    const { code, stderr } = await runNode([
      `--import=data:text/javascript,${breaking}`,
      path.join(project, 'node_modules/csi-provisioner/dist/csi-provisioner.js'),
      ...['why', 'ns/claim'],
    ]);
    assert.equal(code, 1);
    assert.match(stderr, /^Error: broken for a test\n {4}at /);
    assert.match(stderr, /\n\nNode\.js v\d+\.\S+\n$/);
    assert.ok(stderr.length < 5000, `${stderr.length} characters`);
  });

  test('compiles in a strict project that also checks the declarations', async () => {
    await writeFile(
      path.join(project, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: { ...strictest, rootDir: 'src' }, include: ['src'] }),
    );
    await run(project, process.execPath, path.join(root, 'node_modules/typescript/bin/tsc'), '--project', '.');
    assert.deepEqual((await readdir(path.join(project, 'out'))).sort(), ['main.js', 'names.js', 'replicated.js']);
  });

  test('exports what the sources export', async () => {
    const names = JSON.parse(await run(project, process.execPath, 'out/names.js')) as string[][];
    assert.deepEqual(
      names,
      [library, parts, testing].map((entry) => Object.keys(entry)),
    );
    assert.ok(names[0]?.includes('ProvisionController'));
  });

  test('lets nobody import what is not public', async () => {
    const program = `await import('csi-provisioner/dist/lib/kube/transport.js')`;
    const failing = run(project, process.execPath, '--input-type=module', '--eval', program);
    await assert.rejects(failing, /ERR_PACKAGE_PATH_NOT_EXPORTED/);
  });

  test('tests a provisioner with the suite that it brings', async () => {
    await cp(path.join(examples, 'main.test.ts'), path.join(project, 'src', 'main.test.ts'));
    const { NODE_TEST_CONTEXT: _ours, ...env } = process.env;
    const only = '--test-name-pattern=(a claim becomes a folder|before the volume is saved, the claim gets)';
    const { stdout } = await exec(process.execPath, ['--test', '--test-reporter=tap', only, 'src/main.test.ts'], {
      cwd: project,
      env,
    });
    assert.match(stdout, /^# pass 2$/m);
    assert.match(stdout, /^# fail 0$/m);
  });

  test('runs: a claim becomes a bound volume', async () => {
    await using sandbox = await Sandbox.start();
    const client = sandbox.api.client('test');
    client.create(
      { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' },
      { metadata: { name: 'folders' }, provisioner: 'hostpath.example.com' },
    );
    const claims = { group: '', version: 'v1', plural: 'persistentvolumeclaims' };
    client.create(claims, {
      metadata: { name: 'photos', namespace: 'default' },
      spec: {
        storageClassName: 'folders',
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '5Gi' } },
      },
    });
    const program = await startProcess({
      program: process.execPath,
      args: [path.join(project, 'out/main.js'), path.join(project, 'volumes')],
      env: { KUBECONFIG: sandbox.kubeconfig },
    });
    try {
      const name = await eventually(
        () => {
          const claim = client.get(claims, { namespace: 'default', name: 'photos' }) as unknown as {
            spec: { volumeName?: string };
            status?: { phase?: string };
          };
          assert.equal(claim.status?.phase, 'Bound');
          return claim.spec.volumeName ?? '';
        },
        { hopeless: () => (program.running() ? undefined : program.log()) },
      );
      assert.ok(existsSync(path.join(project, 'volumes', name)));
    } finally {
      await program.stop();
    }
    assert.equal(await program.ending(), 'exit code 0', program.log());
  });

  describe('on a Node.js that is too old', () => {
    const inPackage = (file: string): string => path.join(project, 'node_modules/csi-provisioner', file);
    const runtimes = [
      { node: process.execPath, flags: claimingVersion('23.9.0'), title: 'by its version' },
      ...olderNodes().map((node) => ({ node, flags: [], title: `at ${node}` })),
    ];
    for (const { node, flags, title } of runtimes) {
      test(`the command says so in one line and ends with code 1: ${title}`, async () => {
        const run = await runNode([...flags, inPackage('dist/csi-provisioner.js'), '--version'], { node });
        assert.deepEqual([run.code, run.stdout], [1, '']);
        assert.match(run.stderr, /^csi-provisioner needs Node\.js 24 or newer, and this is Node\.js [\d.]+\n$/);
      });

      test(`the library throws an error that says so: ${title}`, async () => {
        const program = `import(${JSON.stringify(inPackage('dist/lib/index.js'))}).catch((e) => console.log(e.message))`;
        const run = await runNode([...flags, '--eval', program], { node });
        assert.match(run.stdout, /^csi-provisioner needs Node\.js 24 or newer, and this is Node\.js [\d.]+\n$/);
      });
    }
    if (runtimes.length === 1) test('of this machine', { skip: 'no older Node.js here' });
  });

  test('logs the source files that its lines come from, though it is one file', async () => {
    const main = path.join(project, 'node_modules/csi-provisioner/dist/csi-provisioner.js');
    await using sidecar = await startSidecar({ main, flags: ['--logging-format=json', '-v=5', 'ignored'] });
    await sidecar.logged(/Started provisioner controller/);
    await sidecar.process.stop();
    const lines = sidecar.process.log().trimEnd().split('\n');
    const callers = new Set(lines.map((line) => (JSON.parse(line) as { caller: string }).caller));
    assert.ok(callers.size > 10, `${callers.size} callers`);
    const files = await readdir(path.join(root, 'src'), { recursive: true });
    for (const caller of callers) {
      const [, name = '', line = ''] = /^(.*):(\d+)$/.exec(caller) ?? [];
      const file = files.find((each) => `src/${each}`.endsWith(`/${name}`)) ?? assert.fail(caller);
      const text = (await readFile(path.join(root, 'src', file), 'utf8')).split('\n')[Number(line) - 1];
      assert.match(text ?? '', /logger[.[]/i, caller);
    }
  });

  test('brings the sandbox as a command, with sidecar, sample driver and the rights of our manifests', async () => {
    const program = `
      const { KubeConfig, CoreV1Api } = await import(${JSON.stringify(import.meta.resolve('@kubernetes/client-node'))});
      const config = new KubeConfig();
      config.loadFromDefault();
      const api = config.makeApiClient(CoreV1Api);
      const namespace = 'default';
      const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
      await api.createNamespacedPersistentVolumeClaim({ namespace, body: { metadata: { name: 'photos' }, spec } });
      for (let phase; phase !== 'Bound'; ) {
        const claim = await api.readNamespacedPersistentVolumeClaim({ namespace, name: 'photos' });
        phase = claim.status?.phase;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      console.log('photos is bound');`;
    const sandbox = path.join(project, 'node_modules/.bin/csi-sandbox');
    const said = await run(
      project,
      sandbox,
      '--rbac',
      '--',
      process.execPath,
      '--input-type=module',
      '--eval',
      program,
    );
    assert.match(said, /photos is bound/);
    assert.match(await run(project, sandbox, 'hostpath-driver', '--help'), /--csi-address ADDRESS/);
    assert.match(await run(project, sandbox, 'api', '--help'), /--kubeconfig PATH/);
  });

  test('runs by npx on a machine without git', async () => {
    const machine = { cwd: project, PATH: withoutGit };
    await assert.rejects(run(machine, 'sh', '-c', 'git --version'), /git: not found/);
    const program = `console.log('the cluster is at', process.env.KUBECONFIG)`;
    const said = await run(machine, 'npx', 'csi-sandbox', '--', 'node', '--eval', program);
    assert.match(said, /the cluster is at \S+/);
  });

  test('brings the sidecar as a command', async () => {
    const { version } = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as { version: string };
    const said = await run(project, path.join(project, 'node_modules/.bin/csi-provisioner'), '--version');
    assert.match(said, new RegExp(`v${version.replaceAll('.', '\\.')}\\s*$`));
  });
});
