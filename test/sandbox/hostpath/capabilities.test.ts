import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chooseCapabilities } from '../../../sandbox/hostpath/capabilities.ts';

describe('chooseCapabilities', () => {
  test('attaching brings three, topology one', () => {
    const plain = chooseCapabilities({ attach: false, topology: false, off: [] });
    const all = chooseCapabilities({ attach: true, topology: true, off: [] });
    assert.deepEqual(
      [...all.controller].filter((name) => !plain.controller.has(name)),
      ['PUBLISH_UNPUBLISH_VOLUME', 'PUBLISH_READONLY', 'LIST_VOLUMES_PUBLISHED_NODES'],
    );
    assert.deepEqual(
      [...all.plugin].filter((name) => !plain.plugin.has(name)),
      ['VOLUME_ACCESSIBILITY_CONSTRAINTS'],
    );
    assert.deepEqual(all.node, plain.node);
  });

  test('a bare name is taken away everywhere, a placed one in its place', () => {
    const bare = chooseCapabilities({ attach: true, topology: true, off: ['EXPAND_VOLUME'] });
    assert.equal(bare.controller.has('EXPAND_VOLUME') || bare.node.has('EXPAND_VOLUME'), false);
    const placed = chooseCapabilities({ attach: true, topology: true, off: ['node:EXPAND_VOLUME'] });
    assert.deepEqual([placed.controller.has('EXPAND_VOLUME'), placed.node.has('EXPAND_VOLUME')], [true, false]);
  });

  for (const off of ['NO_SUCH', 'node:GET_CAPACITY', 'expand_volume']) {
    test(`${off} is refused`, () => {
      assert.throws(() => chooseCapabilities({ attach: true, topology: true, off: [off] }), {
        name: 'RangeError',
        message: `unknown capability ${off}`,
      });
    });
  }
});
