import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, test } from 'node:test';
import { auditArguments, type AuditArguments } from '../../../src/cli/audit-command.ts';
import { SubcommandError } from '../../../src/cli/subcommand-call.ts';

function read(...args: string[]): { parsed: AuditArguments | undefined; printed: string } {
  let printed = '';
  const parsed = auditArguments(
    {
      program: 'csi-provisioner audit',
      args,
      environment: { NODE_NAME: 'n1' },
      stdin: new PassThrough(),
      stdout: { write: (text) => (printed += text) },
      stderr: { write: () => true },
      signal: new AbortController().signal,
    },
    { usageCode: 1 },
  );
  return { parsed, printed };
}

describe('the arguments of audit', () => {
  test('have the defaults of the sidecar, and a minute between the looks', () => {
    const { parsed } = read();
    assert.equal(parsed?.secondLookMs, 60_000);
    assert.equal(parsed.output, 'table');
    assert.deepEqual(parsed.ids, []);
    assert.equal(parsed.isAgreed, false);
    assert.equal(parsed.config.csiAddress, '/run/csi/socket');
    assert.equal(parsed.config.intentJournal?.namespace, '');
    assert.equal(parsed.config.nodeDeployment, null);
  });

  test('may be those of the sidecar, with its own between them', () => {
    const { parsed } = read(
      ...['--csi-address', '/csi/s', '--second-look=90s', '--leader-election', '--extra-create-metadata=true', '-v=5'],
      ...['-o', 'json', '--timeout', '1m', '--delete', 'a', 'b', '--node-deployment', '--yes', '--delete=-c'],
    );
    assert.equal(parsed?.config.csiAddress, '/csi/s');
    assert.equal(parsed.config.csiTimeoutMs, 60_000);
    assert.equal(parsed.config.nodeDeployment?.nodeName, 'n1');
    assert.equal(parsed.config.logging.verbosity, 5);
    assert.equal(parsed.secondLookMs, 90_000);
    assert.equal(parsed.output, 'json');
    assert.deepEqual(parsed.ids, ['a', 'b', '-c']);
    assert.equal(parsed.isAgreed, true);
  });

  for (const [args, problem] of [
    [['--nonsense'], /unknown flag: --nonsense/],
    [['--second-look=5'], /--second-look must be a duration such as 1m or 90s, got "5"/],
    [['--second-look=-1s'], /--second-look must be a duration/],
    [['-o', 'yaml'], /--output must be table or json, got "yaml"/],
    [['vol-1'], /unexpected argument "vol-1"/],
    [['--delete'], /argument missing/],
    [['--delete', 'vol-1', ''], /--delete must be followed by the ids of volumes, got an empty one/],
    [['--timeout=fast'], /invalid argument "fast" for "--timeout" flag/],
  ] as const) {
    test(`that cannot be understood end with code 1: ${args.join(' ')}`, () => {
      assert.throws(
        () => read(...args),
        (error) => error instanceof SubcommandError && error.exitCode === 1 && problem.test(error.message),
      );
    });
  }

  test('have a help of at most 100 columns, with the exit codes', () => {
    const { parsed, printed } = read('--help');
    assert.equal(parsed, undefined);
    assert.match(printed, /^Usage: csi-provisioner audit \[options\]/);
    assert.match(printed, /Exit codes: 0 nothing needs attention/);
    for (const line of printed.split('\n')) assert.ok(line.length <= 100, line);
  });
});
