/** `csi-provisioner preflight` as a process: what it prints, and its exit codes. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { PreflightReport } from '../../../src/cli/preflight/preflight-report.ts';
import { access, type DriverOptions, workload } from '../../unit/cli/preflight/driver-manifests.ts';
import { mainFile, type ProgramRun, runNode, runProgram } from './program-run.ts';

const plugin = path.join(import.meta.dirname, '../../../src/cli/plugin/plugin-main.ts');
const { name } = path.parse(mainFile);
const ready = {};
const warned = { args: ['--leader-election', '--timeout=60s'] };
const broken = { args: ['--leader-election', '--bogus'] };

describe('preflight', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'preflight-'));
  });
  after(() => rm(folder, { recursive: true }));

  const write = async (options: DriverOptions): Promise<string> => {
    const file = path.join(folder, 'driver.json');
    await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [workload(options), ...access()] }));
    return file;
  };
  const piped = (program: string, args: readonly string[], input: string): Promise<ProgramRun> =>
    new Promise((resolve) => {
      const child = execFile(process.execPath, [program, ...args], (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      );
      child.stdin?.end(input);
    });

  for (const { title, driver, flags, want } of [
    { title: 'nothing to do', driver: ready, flags: [], want: 0 },
    { title: 'nothing to do, with --strict', driver: ready, flags: ['--strict'], want: 0 },
    { title: 'a warning', driver: warned, flags: [], want: 0 },
    { title: 'a warning, with --strict', driver: warned, flags: ['--strict'], want: 1 },
    { title: 'something to do first', driver: broken, flags: [], want: 1 },
  ]) {
    test(`ends with code ${want} for ${title}`, async () => {
      const { code, stdout, stderr } = await runProgram(['preflight', await write(driver), ...flags]);
      assert.equal(code, want, stdout + stderr);
      assert.equal(stderr, '');
    });
  }

  test('ends with a sentence that the image may be changed only where nothing has to be done or known first', async () => {
    const ends = async (driver: DriverOptions): Promise<boolean> =>
      (await runProgram(['preflight', await write(driver)])).stdout.endsWith('\nThe image may be changed.\n');
    assert.deepEqual([await ends(ready), await ends(warned), await ends(broken)], [true, false, false]);
  });

  test('prints where the container is, and each finding with what to do', async () => {
    const { stdout } = await runProgram(['preflight', await write(broken)]);
    assert.match(
      stdout,
      /^Deployment storage\/driver-controller, container csi-provisioner \(Go sidecar v6\.3\)\n {2}in .*driver\.json, document 1: 1 thing to do first\n/,
    );
    assert.match(
      stdout,
      /\n {2}✗ arguments: The process would end at once: unknown flag: --bogus\n {4}→ Remove the flag/,
    );
    for (const line of stdout.split('\n').slice(2)) assert.ok(line.length <= 100, line);
  });

  test('prints JSON with the fields of docs/preflight.md', async () => {
    const { stdout } = await runProgram(['preflight', '-o', 'json', await write(broken)]);
    const report = JSON.parse(stdout) as PreflightReport;
    assert.equal(report.verdict, 'must');
    const page = await readFile(path.join(import.meta.dirname, '../../../docs/preflight.md'), 'utf8');
    const [sidecar] = report.sidecars;
    assert.ok(sidecar !== undefined);
    const [finding = {}] = sidecar.findings;
    const [right = {}] = sidecar.rights;
    for (const object of [report, sidecar, sidecar.workload, finding, right]) {
      for (const field of Object.keys(object)) assert.ok(page.includes(`\`${field}\``), field);
    }
  });

  test('reads standard input, in the kubectl plugin as well', async () => {
    const input = await readFile(await write(broken), 'utf8');
    for (const program of [mainFile, plugin]) {
      const { code, stdout, stderr } = await piped(program, ['preflight', '-'], input);
      assert.equal(code, 1, stderr);
      assert.match(stdout, /in standard input, document 1/);
    }
  });

  test('commands to copy are those of the program as it was called', async () => {
    const file = path.join(folder, 'commands.yaml');
    const said = ({ stdout, stderr }: ProgramRun): string => `${stdout}${stderr}`.replaceAll(/\s+/g, ' ');
    for (const { content, command } of [
      { content: 'kind: {{ .Values.kind }}', command: 'preflight -' },
      { content: JSON.stringify(workload(ready)), command: 'preflight FILE... -' }, // without the roles of its account
    ]) {
      await writeFile(file, content);
      const byNpm = said(await runProgram(['preflight', file], { npm_lifecycle_event: 'start' }));
      assert.ok(byNpm.includes(` | npm start -- ${command}`), byNpm);
      const ofPlugin = said(await runNode([plugin, 'preflight', file]));
      assert.ok(ofPlugin.includes(` | kubectl csi ${command}`), ofPlugin);
    }
  });

  test('ends with code 2, and says what to do, where something cannot be read', async () => {
    for (const { args, says } of [
      { args: [], says: /missing required argument 'file'\. See \S+ preflight --help/ },
      { args: ['--bogus', 'x'], says: /unknown option '--bogus'/ },
      { args: ['-o', 'yaml', 'x'], says: /Allowed choices are text, json/ },
      { args: [path.join(folder, 'none')], says: /there is no such file or folder/ },
    ]) {
      const { code, stdout, stderr } = await runProgram(['preflight', ...args]);
      assert.equal(code, 2, args.join(' '));
      assert.equal(stdout, '');
      assert.ok(stderr.startsWith(`${name} preflight: `), stderr);
      assert.match(stderr, says);
    }
  });

  test('shows no value of a Secret or of a variable, and nothing that a terminal would act on', async () => {
    const objects = [
      workload({
        args: ['--leader-election', '--password=hunter2', '--token', 'hunter2'],
        container: { name: 'csi\u001b[2Jprovisioner', env: [{ name: 'LOGIN', value: 'hunter2' }] },
      }),
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, stringData: { login: 'hunter2' } },
    ];
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    for (const form of ['text', 'json']) {
      const { code, stdout, stderr } = await piped(mainFile, ['preflight', '-o', form, '-'], input);
      assert.equal(code, 1, stderr);
      assert.ok(!`${stdout}${stderr}`.includes('hunter2'), stdout);
      assert.ok(!stdout.includes('\u001b'), stdout);
    }
  });
});
