import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ApiServer } from '../../../sandbox/api/api-server.ts';
import { ApiUnderComparison } from '../../support/api-verdicts/api-under-comparison.ts';
import { kindNames } from '../../support/api-verdicts/kinds.ts';
import { readVerdicts, type RecordedVerdict } from '../../support/api-verdicts/record.ts';

/** Recorded from a real API server with `npm run fuzz:api`, as docs/development.md shows. */
const verdicts = await readVerdicts();

describe('the sandbox says what Kubernetes says of', () => {
  const server = new ApiServer();
  let api: ApiUnderComparison;

  before(async () => {
    const { url } = await server.start();
    api = await ApiUnderComparison.prepare(url); // valid objects with every field are accepted, or this throws
  });
  after(async () => {
    await api[Symbol.asyncDispose]();
    await server.close();
  });

  const judgedOtherwise = async (recorded: RecordedVerdict): Promise<object[]> => {
    const { verdict, fields, ...write } = recorded;
    const ours = await api.judge(write);
    const isSame = ours.verdict === verdict && ours.fields.join() === fields.join();
    return isSame ? [] : [{ write, kubernetes: { verdict, fields }, sandbox: ours }];
  };

  for (const kind of kindNames) {
    for (const operation of ['new', 'changed'] as const) {
      const ofKind = verdicts.filter(
        (each) => each.kind === kind && (operation === 'new') === (each.replaces === undefined),
      );
      test(`a ${operation} ${kind}`, async () => {
        assert.ok(ofKind.length > 0, 'the record has none');
        const differences = await Promise.all(ofKind.map(judgedOtherwise));
        assert.deepEqual(differences.flat(), []);
      });
    }
  }
});
