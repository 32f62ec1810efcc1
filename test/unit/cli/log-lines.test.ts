import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SecretString } from '../../../src/base/secret-string.ts';
import { jsonLine, jsonValue, klogLine, type LogRecord } from '../../../src/cli/log-lines.ts';

/** Local time, as the header shows it. */
const epochMicros = new Date(2026, 0, 2, 3, 4, 5, 6).getTime() * 1000 + 789;

const record: LogRecord = {
  level: 'info',
  epochMicros,
  caller: 'cli/run.ts:12',
  message: 'm',
  inherited: {},
  fields: {},
};

function line(fields: Record<string, unknown>, pid = 42): string {
  return klogLine({ ...record, fields }, { pid });
}

describe('klogLine', () => {
  test('the header: severity, local time, pid in seven places, file and line', () => {
    assert.equal(line({}), 'I0102 03:04:05.006789      42 run.ts:12] "m"\n');
    assert.equal(line({}, 12345678), 'I0102 03:04:05.006789 12345678 run.ts:12] "m"\n');
  });

  for (const [level, letter] of [
    ['trace', 'I'],
    ['debug', 'I'],
    ['info', 'I'],
    ['warn', 'W'],
    ['error', 'E'],
    ['fatal', 'F'],
  ] as const) {
    // prettier-ignore
    test(`${level} is ${letter}`, () => assert.equal(klogLine({ ...record, level })[0], letter));
  }

  test('values: text quoted, numbers, booleans and null bare, objects as JSON', () => {
    assert.match(
      line({ text: 'a "b"\nc', n: 1.5, t: true, nil: null, list: [1, 'x'], map: { k: 'v\n' }, err: 'boo' }),
      /\] "m" text="a \\"b\\"\\nc" n=1\.5 t=true nil=null list=\[1,"x"\] map=\{"k":"v\\n"\} err="boo"\n$/,
    );
  });

  test('a rule to copy keeps its line breaks, indented as below `rules:`', () => {
    const addRule = '- apiGroups: [""]\n  resources: ["events"]\n  verbs: ["create"]';
    assert.match(
      line({ verb: 'create', addRule }),
      /"m" verb="create" addRule=<\n {2}- apiGroups: \[""\]\n {4}resources: \["events"\]\n {4}verbs: \["create"\]\n >\n$/,
    );
  });

  test('integers beyond 2^53 keep their digits, alone and inside objects', () => {
    assert.match(
      line({ bytes: 9223372036854775807n, at: { n: -9007199254740993n } }),
      /bytes=9223372036854775807 at=\{"n":"-9007199254740993"\}\n$/,
    );
  });

  test('an unquoted message stays one line and keeps its quotes and letters', () => {
    const plain = klogLine({ ...record, message: 'open "x":\n\u2028\u00e4\u0000' }, { plainMessage: true });
    assert.match(plain, /\] open "x":\\n\\u2028\u00e4\\x00\n$/);
  });

  test("the logger's fields come first, and a field of the line replaces one of the same name", () => {
    const text = klogLine({ ...record, inherited: { component: 'lease', n: 1 }, fields: { claim: 'a/b', n: 2 } });
    assert.match(text, /\] "m" component="lease" n=2 claim="a\/b"\n$/);
  });

  test('an object that JSON prints as a text is quoted as texts are', () => {
    const secret = SecretString.fromText('hunter2');
    assert.match(line({ secret, at: new Date(0) }), /secret="\*\*\*stripped\*\*\*" at="1970-01-01T00:00:00\.000Z"\n$/);
  });
});

describe('jsonLine', () => {
  const record: LogRecord = {
    level: 'info',
    epochMicros: 1767323045006089,
    caller: 'cli/run.ts:12',
    message: 'a "b"\n',
    inherited: { component: 'lease' },
    fields: { claim: 'ns/c', attempt: 2 },
  };

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
