import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SecretString } from '../../../src/base/secret-string.ts';
import { jsonLine, jsonValue } from '../../../src/cli/json-line.ts';
import type { LogRecord } from '../../../src/cli/log-record.ts';

const record: LogRecord = {
  level: 'info',
  epochMicros: 1767323045006089,
  caller: 'cli/run.ts:12',
  message: 'a "b"\n',
  inherited: { component: 'lease' },
  fields: { claim: 'ns/c', attempt: 2 },
};

describe('jsonLine', () => {
  test('has level, v, ts, the fields of the logger, caller, the fields of the line and msg, in this order', () => {
    assert.equal(
      jsonLine(record),
      '{"level":"info","v":0,"ts":1767323045006.089,"component":"lease","caller":"cli/run.ts:12",' +
        '"claim":"ns/c","attempt":2,"msg":"a \\"b\\"\\n"}\n',
    );
  });

  for (const [level, v] of [
    ['trace', 5],
    ['debug', 2],
    ['info', 0],
    ['warn', 0],
    ['error', undefined],
    ['fatal', 0],
  ] as const) {
    test(`${level} has ${v === undefined ? 'no v' : `v ${v}`}`, () => {
      assert.equal((JSON.parse(jsonLine({ ...record, level })) as { v?: number }).v, v);
    });
  }
});

describe('jsonValue', () => {
  const circle: Record<string, unknown> = { secret: SecretString.fromText('hunter2') };
  circle['self'] = circle;
  const cases: [string, unknown, string][] = [
    ['texts are quoted', 'a\u0000"', String.raw`"a\u0000\""`],
    ['numbers, booleans and null are bare', [1.5, true, null], '[1.5,true,null]'],
    ['a number that JSON does not know is null', Infinity, 'null'],
    ['an integer keeps its digits', 2n ** 63n - 1n, '9223372036854775807'],
    ['an integer within an object is a text', { n: -9007199254740993n }, '{"n":"-9007199254740993"}'],
    ['a secret is redacted', [SecretString.fromText('hunter2')], '["***stripped***"]'],
    [
      'an object within itself is described, its secrets redacted',
      circle,
      '"<ref *1> { secret: ***stripped***, self: [Circular *1] }"',
    ],
    ['what JSON leaves out is described', Symbol('s'), '"Symbol(s)"'],
  ];
  for (const [title, value, want] of cases) test(title, () => assert.equal(jsonValue(value), want));
});
