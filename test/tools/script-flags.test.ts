/** The command lines of scripts and benchmarks, each as a process. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { describe, test } from 'node:test';

const root = path.join(import.meta.dirname, '../..');
const bundledClient = path.join(root, 'test/support/bundled-client.ts'); // where there is one

interface Ending {
  code: unknown;
  stdout: string;
  stderr: string;
}

function run(script: string, ...args: string[]): Promise<Ending> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--import', bundledClient, path.join(root, script), ...args],
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : error.code, stdout, stderr });
      },
    );
  });
}

const scripts: [script: string, flag: string, name: string][] = [
  ['bench/bench.ts', '--peer-flags', 'npm run bench --'],
  ['bench/builds.ts', '--turns', 'npm run bench:builds --'],
  ['bench/journal.ts', '--open', 'npm run bench:journal --'],
  ['bench/memory.ts', '--pairs', 'npm run bench:memory --'],
  ['bench/scale.ts', '--lists', 'npm run bench:scale --'],
  ['bench/why.ts', '--events', 'npm run bench:why --'],
  ['bench/nfs-subdir.ts', '--claims', 'npm run bench:nfs-subdir --'],
  ['scripts/chaos.ts', '--without', 'npm run chaos --'],
  ['scripts/kept.ts', '--records', 'npm run kept --'],
  ['scripts/grey.ts', '--peer-flags', 'npm run grey --'],
  ['scripts/try-driver.ts', '--peer', 'npm run try-driver --'],
  ['scripts/release.ts', '--output', 'npm run release --'],
  ['scripts/release-check.ts', '--architectures', 'npm run release:check --'],
  ['scripts/image-test.ts', '--only', 'npm run image:test --'],
  ['scripts/npm-package.ts', '--out', 'npm run package --'],
  ['scripts/csi-sanity.ts', '--block', 'npm run csi-sanity --'],
];

describe('a script with flags', { concurrency: 2 }, () => {
  for (const [script, flag, name] of scripts) {
    test(`${script} prints its usage for --help, and refuses an unknown flag`, async () => {
      const help = await run(script, '--help');
      assert.deepEqual([help.code, help.stderr], [0, '']);
      assert.ok(help.stdout.includes(name) && help.stdout.includes(flag), help.stdout);
      const unknown = await run(script, '--nonsense');
      assert.deepEqual([unknown.code, unknown.stdout], [2, '']);
      assert.match(unknown.stderr, /nknown option '--nonsense'/);
      assert.ok(unknown.stderr.includes(`${name} --help`), unknown.stderr);
      assert.doesNotMatch(unknown.stderr, /^ +at /m);
    });
  }

  const refused: [script: string, args: string[], message: RegExp][] = [
    [
      'bench/bench.ts',
      ['--claims', '1'],
      /--claims <N>' argument '1' is invalid\. It must be a whole number of at least 2/,
    ],
    ['bench/bench.ts', ['--target', 'moon'], /argument 'moon' is invalid\. Allowed choices are kubernetes, sandbox/],
    ['scripts/grey.ts', ['--only', 'flood,drought'], /"drought" is not one of standing-server, dead-backend-leader,/],
    ['scripts/try-driver.ts', ['floppy'], /'floppy' is not one of sandbox, mock, hostpath, nfs, smb\./],
    [
      'scripts/try-driver.ts',
      ['nfs', '--peer', 'x'],
      /--driver is needed: the command of kubernetes-csi\/csi-driver-nfs/,
    ],
    ['scripts/chaos.ts', ['--kills', 'many'], /argument 'many' is invalid\. It must be a whole number of at least 1/],
    ['scripts/chaos.ts', ['--only', 'weather'], /"weather" is not one of deletions, admin,/],
    ['scripts/chaos.ts', ['--together'], /--together needs --no-election/],
    [
      'scripts/kept.ts',
      ['--bundle=a', '--sidecar=b'],
      /'--sidecar <CMD>' cannot be used with option '--bundle <PATH>'/,
    ],
    ['scripts/kept.ts', ['--mode=other'], /--mode other and --other need each other/],
    ['scripts/kept.ts', ['--other=some/sidecar'], /--mode other and --other need each other/],
    ['scripts/kept.ts', ['--mode=war'], /Allowed choices are crash, election, journal-off, other\./],
  ];
  for (const [script, args, message] of refused) {
    test(`${script} refuses ${args.join(' ')}, and says what may stand there`, async () => {
      const { code, stderr } = await run(script, ...args);
      assert.equal(code, 2);
      assert.match(stderr, message);
    });
  }
});
