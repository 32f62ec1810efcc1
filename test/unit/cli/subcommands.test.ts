import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PassThrough, Writable } from 'node:stream';
import { runSubcommand, SubcommandError } from '../../../src/cli/subcommand-call.ts';
import { findSubcommand, subcommandHelp } from '../../../src/cli/subcommands.ts';

describe('findSubcommand', () => {
  test('finds a subcommand as the first argument, with the arguments behind it', () => {
    const found = findSubcommand('/usr/bin/csi-provisioner', ['why', 'ns/claim', '--watch']);
    assert.equal(found?.program, 'csi-provisioner why');
    assert.deepEqual(found.args, ['ns/claim', '--watch']);
  });

  test('calls the program what it is called without its extension', () => {
    assert.equal(findSubcommand('/csi-provisioner.mjs', ['why'])?.program, 'csi-provisioner why');
  });

  for (const { name, args, want } of [
    { name: 'a flag', args: ['--v=5', 'why', 'a/b'], want: ['--v=5', 'a/b'] },
    { name: 'a flag and its value', args: ['--timeout', '5s', 'why', '-w'], want: ['--timeout=5s', '-w'] },
    { name: 'a value that a boolean does not take', args: ['--leader-election', 'false', 'why'], want: ['--leader-election=true'] }, // prettier-ignore
    { name: 'a word of no meaning', args: ['start', 'why', 'a/b'], want: ['a/b'] },
    { name: 'the end of flags', args: ['--', 'why', 'a/b'], want: ['a/b'] },
  ]) {
    test(`finds a subcommand behind ${name}`, () => {
      const found = findSubcommand('/csi-provisioner', args);
      assert.equal(found?.program, 'csi-provisioner why');
      assert.deepEqual(found.args, want);
    });
  }

  for (const { name, args } of [
    { name: 'no arguments', args: [] },
    { name: 'flags of the sidecar', args: ['--csi-address=/run/csi/socket'] },
    { name: 'the value of a flag', args: ['--leader-election-namespace', 'why', '-v', 'audit'] },
    { name: 'a request for help', args: ['--help', 'why'] },
    { name: 'a command line that cannot be understood', args: ['--namespace', 'why'] },
    { name: 'the name of a property that every object has', args: ['toString'] },
    { name: 'another word', args: ['whyever'] },
    { name: 'a letter that is in a name', args: ['--leader-election', 'y'] },
    { name: 'the values that booleans do not take', args: ['--leader-election', 'false', '--v=5', 'true', '1', ''] },
  ]) {
    test(`leaves ${name} to the sidecar`, () => {
      assert.equal(findSubcommand('/csi-provisioner', args), undefined);
    });
  }

  for (const [word, meant] of [
    ['whyy', 'why'],
    ['wy', 'why'],
    ['Why', 'why'],
    ['audti', 'audit'],
    ['audits', 'audit'],
    ['jurnal', 'journal'],
    ['journals', 'journal'],
    ['prefligth', 'preflight'],
  ] as const) {
    test(`${word} ends with code 2 and names ${meant}`, () => {
      assert.throws(() => findSubcommand('/csi-provisioner', ['--v=5', word, 'audit']), {
        name: 'ExitError',
        code: 2,
        message: `unknown subcommand "${word}" (did you mean ${meant}?)`,
      });
    });
  }

  test('the help has each subcommand and fits 100 columns', () => {
    assert.match(subcommandHelp(), /^ {2}why {2,}\S/m);
    for (const line of subcommandHelp().split('\n')) assert.ok(line.length <= 100, line);
  });
});

/** A process whose standard output fails at the first write, or takes it. */
function processWith({ outputError }: { outputError?: NodeJS.ErrnoException } = {}) {
  const written = { stderr: '' };
  const exited = Promise.withResolvers<number>();
  const process = {
    env: {},
    stdin: new PassThrough(),
    stdout: new Writable({ write: (_chunk, _encoding, done) => done(outputError) }),
    stderr: new Writable({
      write: (chunk, _encoding, done) => {
        written.stderr += String(chunk);
        done();
      },
    }),
    once: () => process,
    exit: (code: number) => exited.resolve(code),
  };
  return { process: process as unknown as Parameters<typeof runSubcommand>[1], exited: exited.promise, written };
}

describe('runSubcommand', () => {
  for (const { name, code, exitCode, stderr } of [
    { name: 'has gone away ends it in silence, but not as a success', code: 'EPIPE', exitCode: 141, stderr: '' },
    { name: 'is full', code: 'ENOSPC', exitCode: 3, stderr: 'x y: the output cannot be written: no space left\n' },
  ]) {
    test(`an output that ${name}`, async () => {
      const outputError = Object.assign(new Error('no space left'), { code });
      const { process, exited, written } = processWith({ outputError });
      const found = findSubcommand('x', ['why', '--help'])!;
      await runSubcommand({ ...found, program: 'x y' }, process);
      assert.equal(await exited, exitCode);
      assert.equal(written.stderr, stderr);
    });
  }

  test('escapes what a terminal would act on in a failure, line by line', async () => {
    const { process, written } = processWith();
    const run = (): Promise<number> =>
      Promise.reject(new SubcommandError('the driver says \u001b[2J\r\n  second line', { exitCode: 3 }));
    assert.equal(await runSubcommand({ run, program: 'x y', args: [] }, process), 3);
    assert.equal(written.stderr, 'x y: the driver says \\u001b[2J\\u000d\n  second line\n');
  });
});
