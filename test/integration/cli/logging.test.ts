import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { SecretString } from '../../../src/base/secret-string.ts';
import { createLogger, type LoggingConfig, type ProcessLogger } from '../../../src/cli/logging.ts';
import { anyText } from '../../support/any-text.ts';

const klogHeader = /^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} [ \d]{7} [\w.-]+:\d+\] /;

function logged(config: Partial<LoggingConfig>, log: (logger: ProcessLogger) => void): string[] {
  const lines: string[] = [];
  log(createLogger({ format: 'text', verbosity: 0, ...config, sink: { write: (line) => lines.push(line) } }));
  return lines;
}

function records(config: Partial<LoggingConfig>, log: (logger: ProcessLogger) => void): Record<string, unknown>[] {
  return logged({ format: 'json', ...config }, log).map((line) => JSON.parse(line) as Record<string, unknown>);
}

function everyLevel(logger: ProcessLogger): void {
  logger.trace({}, 'trace');
  logger.debug({}, 'debug');
  logger.info({}, 'info');
  logger.warn({}, 'warn');
  logger.error({}, 'error');
}

describe('verbosity', () => {
  const cases: [number, string[]][] = [
    [0, ['info', 'warn', 'error']],
    [1, ['info', 'warn', 'error']],
    [2, ['debug', 'info', 'warn', 'error']],
    [4, ['debug', 'info', 'warn', 'error']],
    [5, ['trace', 'debug', 'info', 'warn', 'error']],
    [2147483647, ['trace', 'debug', 'info', 'warn', 'error']],
  ];
  for (const [verbosity, want] of cases) {
    test(`-v=${verbosity} shows ${want.join(', ')}`, () => {
      assert.deepEqual(records({ verbosity }, everyLevel).map(({ msg }) => msg), want); // prettier-ignore
    });
  }
});

describe('JSON', () => {
  test('has ts, caller, msg and the fields; v on all but errors', () => {
    const before = Date.now();
    const [info, error] = records({}, (logger) => {
      logger.info({ claim: 'ns/c' }, 'Provisioned');
      logger.error({ err: new Error('boo') }, 'Failed');
    });
    const after = Date.now() + 1;
    assert.ok(info !== undefined && error !== undefined);
    assert.ok(Number(info['ts']) >= before && Number(info['ts']) <= after);
    assert.match(String(info['caller']), /^cli\/logging\.test\.ts:\d+$/);
    assert.deepEqual({ ...info, ts: 0, caller: '' }, { level: 'info', v: 0, ts: 0, caller: '', claim: 'ns/c', msg: 'Provisioned' }); // prettier-ignore
    assert.deepEqual({ ...error, ts: 0, caller: '' }, { level: 'error', ts: 0, caller: '', err: 'boo', msg: 'Failed' });
  });

  test('a text that is longer than the longest error of a driver is truncated', () => {
    const long = 'x'.repeat(1_000_000);
    const [line] = records({ verbosity: 5 }, (logger) => logger.info({ err: new Error(long), long }, 'm'));
    const cut = `${'x'.repeat(65_536)}… (1,000,000 characters)`;
    assert.deepEqual([line?.['err'], line?.['long']], [cut, cut]);
    assert.ok(String(line?.['errStack']).length < 70_000);
  });

  test('the time has microseconds', () => {
    const [line] = logged({ format: 'json' }, (logger) => logger.info({}, 'm'));
    assert.match(line ?? '', /"ts":\d{13}\.\d{3},/);
  });

  test('a fatal last line looks like an info line with v 0', () => {
    const [line] = records({}, (logger) => logger.lastLine('fatal', 'unrecognized feature gate: Foo'));
    assert.equal(line?.['v'], 0);
    assert.equal(line['msg'], 'unrecognized feature gate: Foo');
    assert.equal('raw' in line, false);
  });
});

describe('text', () => {
  test('has the klog header and the name of this file', () => {
    const [line] = logged({}, (logger) => logger.info({ claim: 'ns/c', attempt: 2 }, 'Provisioned'));
    assert.match(line ?? '', klogHeader);
    assert.match(line ?? '', / logging\.test\.ts:\d+\] "Provisioned" claim="ns\/c" attempt=2\n$/);
  });

  test('two calls with the same message have each its own line', () => {
    const lines = logged({}, (logger) => {
      logger.info({}, 'm');
      logger.info({}, 'm');
    });
    const [first, second] = lines.map((line) => Number(/logging\.test\.ts:(\d+)\]/.exec(line)?.[1]));
    assert.equal(second, Number(first) + 1);
  });

  test('a last line stands unquoted without fields and quoted with some', () => {
    const [plain, structured] = logged({}, (logger) => {
      logger.lastLine('fatal', 'Failed ("x")');
      logger.lastLine('error', 'LoggingConfiguration is invalid', { err: 'e' });
    });
    assert.match(plain ?? '', /^F.*\] Failed \("x"\)\n$/);
    assert.match(structured ?? '', /^E.*\] "LoggingConfiguration is invalid" err="e"\n$/);
  });
});

describe('both formats', () => {
  test('children add their fields, and children of children theirs', () => {
    const lines = logged({}, (logger) => logger.child({ component: 'lease' }).child({ lock: 'l' }).info({ n: 1 }, 'm'));
    assert.match(lines[0] ?? '', /\] "m" component="lease" lock="l" n=1\n$/);
  });

  test('causes are logged once', () => {
    const inner = new Error('socket gone');
    const chain = new Error('call failed', { cause: new Error('call failed: socket gone', { cause: inner }) });
    const [line] = records({}, (logger) => logger.error({ err: chain }, 'm'));
    assert.equal(line?.['err'], 'call failed: call failed: socket gone');
  });

  test('the message of a gRPC status is logged once, whatever stands before it', () => {
    const status = Object.assign(new Error('13 INTERNAL: disk on fire'), { details: 'disk on fire' });
    const error = new Error('rpc error: code = Internal desc = disk on fire', { cause: status });
    assert.equal(records({}, (logger) => logger.error({ err: error }, 'm'))[0]?.['err'], error.message);
  });

  test('an error that is its own cause ends', () => {
    const error = new Error('round');
    error.cause = error;
    assert.equal(records({}, (logger) => logger.error({ err: error }, 'm'))[0]?.['err'], 'round');
  });

  test('an error without a message shows its name', () => {
    assert.equal(records({}, (logger) => logger.error({ err: new TypeError() }, 'm'))[0]?.['err'], 'TypeError');
  });

  test('stacks show at -v=5 only', () => {
    const log = (logger: ProcessLogger): void => logger.error({ err: new Error('boo') }, 'm');
    assert.equal(records({ verbosity: 4 }, log)[0]?.['errStack'], undefined);
    assert.match(String(records({ verbosity: 5 }, log)[0]?.['errStack']), /^Error: boo\n +at /);
  });

  test('secrets print as redacted, in fields, inside objects and in children', () => {
    const secret = SecretString.fromText('hunter2');
    for (const format of ['text', 'json'] as const) {
      const lines = logged({ format, verbosity: 5 }, (logger) => {
        logger.info({ secret, nested: { list: [secret] } }, `m ${String(secret)}`);
        logger.child({ secret }).error({ err: new Error(`bad ${String(secret)}`) }, 'm');
      }).join('');
      assert.doesNotMatch(lines, /hunter2/);
      assert.match(lines, /\*\*\*stripped\*\*\*/);
    }
  });

  test('sizes keep all digits', () => {
    for (const format of ['text', 'json'] as const) {
      const [line] = logged({ format }, (logger) => logger.info({ capacityBytes: 2n ** 63n - 1n }, 'm'));
      assert.match(line ?? '', /9223372036854775807/);
    }
  });

  test('a record is one line whatever it holds', () => {
    fc.assert(
      fc.property(anyText(), fc.jsonValue(), (text, value) => {
        for (const format of ['text', 'json'] as const) {
          const lines = logged({ format }, (logger) => {
            logger.info({ text, value, [`k${text.replace(/\W/g, '')}`]: 1 }, text);
            logger.lastLine('fatal', text);
          });
          assert.equal(lines.length, 2);
          for (const line of lines) assert.match(line, /^[^\n\r]*\n$/);
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe('standard error', () => {
  const module = JSON.stringify(new URL('../../../src/cli/logging.ts', import.meta.url).href);

  function child(code: string): { stdout: string; stderr: string; status: number | null } {
    const script = `import { createLogger } from ${module};\n${code}`;
    return spawnSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  }

  for (const format of ['text', 'json']) {
    test(`${format} goes there alone, and nothing is lost when the process exits at once`, () => {
      const { stdout, stderr, status } = child(`
        const logger = createLogger({ format: '${format}', verbosity: 0 });
        for (let n = 0; n < 2000; n++) logger.info({ n, filler: 'x'.repeat(100) }, 'line');
        logger.lastLine('fatal', 'the end');
        process.exit(3);`);
      const lines = stderr.trimEnd().split('\n');
      assert.equal(status, 3);
      assert.equal(stdout, '');
      assert.equal(lines.length, 2001);
      assert.match(lines[2000] ?? '', /the end/);
    });
  }

  test('a reader that has gone away does not end the process', () => {
    const { status } = spawnSync('bash', [
      '-c',
      `exec 2> >(exec true); wait $!; "$0" --input-type=module --eval "$1"; exit $?`,
      process.execPath,
      `
        import { createLogger } from ${module};
        const logger = createLogger({ format: 'text', verbosity: 0 });
        for (let n = 0; n < 100; n++) { logger.info({ n }, 'line'); await new Promise(setImmediate); }
        process.exit(7);`,
    ]);
    assert.equal(status, 7);
  });
});
