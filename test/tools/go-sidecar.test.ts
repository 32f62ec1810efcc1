/** The word `go` for the Go sidecar, and its build. The compiler is a stand-in: the real one takes minutes. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { access, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { otherSidecar } from '../support/go-sidecar/go-sidecar.ts';

const root = path.join(import.meta.dirname, '../..');
const buildScript = path.join(root, 'test/support/go-sidecar/build.sh');

/** Says what it was asked for, and makes the program, unless it is to fail. */
const goText = `#!/usr/bin/env bash
echo "$*" >>"$GO_LOG"
case $1 in
  list) if [[ $2 == -m ]]; then echo "$GO_MODULE"; else echo errors; fi ;;
  build)
    if [[ -n \${GO_FAILS:-} ]]; then
      echo 'main.go:7:2: undefined: version' >&2
      exit 1
    fi
    pwd -P >>"$GO_LOG"
    while [[ $1 != -o ]]; do shift; done
    echo 'program' >"$2"
    ;;
esac
`;

describe('the Go sidecar', () => {
  let folder: string;
  let env: NodeJS.ProcessEnv;
  let log: string;
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'go-sidecar-'));
    const [bin, module] = [path.join(folder, 'bin'), path.join(folder, 'module')];
    for (const each of [bin, module]) await mkdir(each);
    await writeFile(path.join(bin, 'go'), goText, { mode: 0o755 });
    log = path.join(folder, 'go.log');
    env = {
      ...process.env,
      PATH: `${bin}:${process.env['PATH'] ?? ''}`,
      XDG_CACHE_HOME: folder,
      GO_SIDECAR: '',
      GO_LOG: log,
      GO_MODULE: module,
    };
  });
  afterEach(() => rm(folder, { recursive: true }));

  const build = (...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> =>
    new Promise((resolve) => {
      execFile('bash', [buildScript, ...args], { env }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : error.code, stdout, stderr });
      });
    });

  test('is compiled once, as the version that go.mod pins, in the folder of its module', async () => {
    const program = await otherSidecar('go', env);
    assert.match(program, /\/go-sidecar\/v6\.4\.\d+\/csi-provisioner$/);
    await access(program);
    const version = path.basename(path.dirname(program));
    const calls = await readFile(log, 'utf8');
    assert.match(calls, new RegExp(`^build .*-X main\\.version=${version} .*\\n.*/module$`, 'm'));
    assert.deepEqual(await readdir(path.dirname(program)), ['csi-provisioner'], 'and nothing half finished');
    assert.equal(await otherSidecar('go', env), program);
    assert.equal(await readFile(log, 'utf8'), calls);
  });

  test('is not compiled for another command, nor for none', async () => {
    assert.equal(await otherSidecar('go run ./cmd', env), 'go run ./cmd');
    assert.equal(await otherSidecar('some/sidecar --a=1', env), 'some/sidecar --a=1');
    assert.equal(await otherSidecar(undefined, env), undefined);
    await assert.rejects(access(log), { code: 'ENOENT' });
  });

  test('is what GO_SIDECAR names, if that is a program', async () => {
    env['GO_SIDECAR'] = path.join(folder, 'bin/go');
    assert.equal(await otherSidecar('go', env), env['GO_SIDECAR']);
    env['GO_SIDECAR'] = path.join(folder, 'none');
    const { code, stderr } = await build();
    assert.deepEqual([code, stderr], [1, `build.sh: GO_SIDECAR=${folder}/none is no program\n`]);
    await assert.rejects(access(log), { code: 'ENOENT' });
  });

  test('that is missing is an exit code for --built, and nothing is compiled', async () => {
    assert.deepEqual(await build('--built'), { code: 1, stdout: '', stderr: '' });
    await assert.rejects(access(log), { code: 'ENOENT' });
    const program = await otherSidecar('go', env);
    assert.deepEqual(await build('--built'), { code: 0, stdout: `${program}\n`, stderr: '' });
  });

  test('without Go is an error that says what to do', async () => {
    const bin = path.join(folder, 'without-go');
    await mkdir(bin);
    const needed = execFileSync('bash', ['-c', 'type -P bash awk dirname'], { encoding: 'utf8' }).trim().split('\n');
    for (const program of needed) await symlink(program, path.join(bin, path.basename(program)));
    env['PATH'] = bin;
    const { code, stdout, stderr } = await build();
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /no go in PATH; install it, or let GO_SIDECAR name an external-provisioner v6\.4\.\d+\n$/);
  });

  test('that cannot be compiled is an error with what the compiler says, and leaves nothing', async () => {
    env['GO_FAILS'] = '1';
    const { code, stdout, stderr } = await build();
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^main\.go:7:2: undefined: version$/m);
    const [version = ''] = await readdir(path.join(folder, 'go-sidecar'));
    assert.deepEqual(await readdir(path.join(folder, 'go-sidecar', version)), []);
  });

  const scripts: [script: string, ...args: string[]][] = [
    ['bench/bench.ts', '--target', 'sandbox', '--peer', 'go'],
    ['bench/memory.ts', '--peer', 'go'],
    ['scripts/chaos.ts', '--other', 'go'],
    ['scripts/grey.ts', '--short', '--peer', 'go'],
    ['scripts/kept.ts', '--cluster', 'sandbox', '--mode', 'other', '--other', 'go'],
    ['scripts/try-driver.ts', 'sandbox', '--cluster', 'sandbox'],
  ];
  for (const [script, ...args] of scripts) {
    test(`is looked for by ${script} ${args.join(' ')} before anything starts`, async () => {
      const named = { ...process.env, GO_SIDECAR: path.join(folder, 'none') };
      const bundledClient = path.join(root, 'test/support/bundled-client.ts'); // where there is one
      const { code, stdout, stderr } = await new Promise<{ code: unknown; stdout: string; stderr: string }>(
        (resolve) => {
          execFile(
            process.execPath,
            ['--import', bundledClient, path.join(root, script), ...args],
            { env: named },
            (error, stdout, stderr) => resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
          );
        },
      );
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, /^build\.sh: GO_SIDECAR=\S+\/none is no program$/m);
    });
  }
});
