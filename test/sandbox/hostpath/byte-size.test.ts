import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseByteSize } from '../../../sandbox/hostpath/byte-size.ts';

describe('parseByteSize', () => {
  const cases: { text: string; want: bigint | undefined }[] = [
    { text: '0', want: 0n },
    { text: '5000', want: 5000n },
    { text: '10k', want: 10_000n },
    { text: '1Ki', want: 1024n },
    { text: '2Gi', want: 2_147_483_648n },
    { text: '1P', want: 10n ** 15n },
    { text: '9223372036854775807', want: 9_223_372_036_854_775_807n },
    { text: '9223372036854775808', want: undefined },
    { text: '9000Pi', want: undefined },
    { text: '', want: undefined },
    { text: '-1', want: undefined },
    { text: '1.5Gi', want: undefined },
    { text: '1ki', want: undefined },
    { text: '1 Gi', want: undefined },
  ];
  for (const { text, want } of cases) {
    test(`${JSON.stringify(text)} is ${want ?? 'refused'}`, () => assert.equal(parseByteSize(text), want));
  }
});
