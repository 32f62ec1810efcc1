import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import { LoggedMessage } from '../../../src/csi/unary-call.ts';
import { createLogger } from '../../../src/cli/logging.ts';

const secretFields = new Set(['secrets']);
const message = { volume_id: 'v', secrets: { user: 'hunter2' } };

describe('LoggedMessage', () => {
  test('prints all but its secret fields, in JSON and for people', () => {
    const logged = new LoggedMessage(message, secretFields);
    assert.equal(JSON.stringify({ logged }), '{"logged":{"volume_id":"v","secrets":"***stripped***"}}');
    assert.equal(inspect({ logged }), "{ logged: { volume_id: 'v', secrets: '***stripped***' } }");
  });

  test('a message without secret fields prints whole', () => {
    assert.equal(JSON.stringify(new LoggedMessage({ volume_id: 'v' }, undefined)), '{"volume_id":"v"}');
  });

  for (const { verbosity, want } of [
    { verbosity: 4, want: 0 },
    { verbosity: 5, want: 1 },
  ]) {
    test(`at -v=${verbosity} the message is read ${want === 0 ? 'never' : 'once'}`, () => {
      let reads = 0;
      const counted = {
        get volume_id(): string {
          reads += 1;
          return 'v';
        },
      };
      const logger = createLogger({ format: 'text', verbosity, sink: { write: () => undefined } });
      logger.trace({ request: new LoggedMessage(counted, secretFields) }, 'GRPC call');
      assert.equal(reads, want);
    });
  }
});
