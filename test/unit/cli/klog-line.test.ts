import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { klogLine } from '../../../src/cli/klog-line.ts';

/** Local time, as the header shows it. */
const ts = new Date(2026, 0, 2, 3, 4, 5, 6).getTime() + 0.789;

function line(fields: object, pid = 42): string {
  return klogLine(JSON.stringify({ level: 'info', v: 0, ts, caller: 'cli/run.ts:12', msg: 'm', ...fields }), pid);
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
  ]) {
    // prettier-ignore
    test(`${level} is ${letter}`, () => assert.equal(line({ level })[0], letter));
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
    const json = `{"level":"info","ts":${ts},"caller":"a:1","msg":"m","bytes":9223372036854775807,"at":{"n":-9007199254740993}}`;
    assert.match(klogLine(json), /bytes=9223372036854775807 at=\{"n":"-9007199254740993"\}\n$/);
  });

  test('an unquoted message stays one line and keeps its quotes and letters', () => {
    assert.match(line({ raw: true, msg: 'open "x":\n\u2028\u00e4\u0000' }), /\] open "x":\\n\\u2028\u00e4\\x00\n$/);
  });
});
