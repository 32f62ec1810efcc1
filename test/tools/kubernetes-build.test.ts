/** How the first build of the control plane shows its progress. The compiler is a stand-in: the real one takes ten minutes. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { programNames } from '../support/control-plane/programs.ts';

const buildScript = path.join(import.meta.dirname, '../support/control-plane/build.sh');

/** Prints what `go list` and `go build` print, and leaves a program unless it is to fail. */
const goText = `#!/usr/bin/env bash
case $1 in
  list)
    echo 'go: downloading k8s.io/api v0.36.3' >&2
    printf '%s\\n' errors k8s.io/api/core/v1 k8s.io/kubernetes/cmd/kube-apiserver
    ;;
  build)
    printf '%s\\n' errors k8s.io/api/core/v1 k8s.io/kubernetes/cmd/kube-apiserver >&2
    if [[ -n \${GO_FAILS:-} ]]; then
      echo 'main.go:7:2: undefined: command' >&2
      exit 1
    fi
    while [[ $1 != -o ]]; do shift; done
    echo 'program' >"$2"
    ;;
esac
`;

describe('the first build of the control plane', () => {
  let folder: string;
  let env: NodeJS.ProcessEnv;
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'build-'));
    await writeFile(path.join(folder, 'go'), goText, { mode: 0o755 });
    env = { ...process.env, PATH: `${folder}:${process.env['PATH'] ?? ''}`, KUBE_BIN_DIR: path.join(folder, 'bin') };
  });
  afterEach(() => rm(folder, { recursive: true }));

  const build = (): Promise<{ code: unknown; stdout: string; stderr: string }> =>
    new Promise((resolve) => {
      execFile('bash', [buildScript], { env }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : error.code, stdout, stderr });
      });
    });

  test('says in plain lines where it is, and leaves the programs and nothing else', async () => {
    const { code, stdout, stderr } = await build();
    assert.deepEqual([code, stdout.trim()], [0, path.join(folder, 'bin')]);
    assert.match(stderr, /^downloading k8s\.io\/api v0\.36\.3, \d+ s$/m);
    assert.match(stderr, /^1 of at most 3 packages compiled, \d+ s$/m);
    assert.ok(!stderr.includes('\r'));
    assert.deepEqual((await readdir(path.join(folder, 'bin'))).sort(), [...programNames, 'control-plane'].sort());
  });

  const noTerminal = spawnSync('script', ['--version']).status === 0 ? false : 'no script(1) here to make a terminal';
  test('draws one line again and again on a terminal, and takes it away', { skip: noTerminal }, async () => {
    const { stdout } = await new Promise<{ stdout: string }>((resolve) => {
      const args = ['-qec', `bash '${buildScript}' >'${folder}/out'`, '/dev/null'];
      execFile('script', args, { env }, (_error, stdout) => resolve({ stdout }));
    });
    const drawn = stdout.split('\r\u001b[K');
    assert.match(drawn.at(-2) ?? '', /^3 of at most 3 packages compiled, \d+ s$/);
    assert.equal(drawn.at(-1), '', 'taken away at the end');
  });

  test('shows what the compiler says is wrong, and fails', async () => {
    env['GO_FAILS'] = '1';
    const { code, stdout, stderr } = await build();
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^main\.go:7:2: undefined: command$/m);
    assert.deepEqual(await readdir(path.join(folder, 'bin')), []);
  });
});
