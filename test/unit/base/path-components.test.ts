import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { containedPath, pathComponents, PathError } from '../../../src/base/path-components.ts';

describe('pathComponents', () => {
  const accepted: [string, string[]][] = [
    ['a', ['a']],
    ['a/b', ['a', 'b']],
    ['/a//b/./c/', ['a', 'b', 'c']],
    ['...', ['...']],
    ['$&$1', ['$&$1']],
    ['ä'.repeat(127), ['ä'.repeat(127)]],
  ];
  for (const [text, components] of accepted) {
    test(`takes ${JSON.stringify(text.slice(0, 20))}`, () => assert.deepEqual(pathComponents(text), components));
  }

  const refused: [string, RegExp][] = [
    ['', /"" is the folder itself/],
    ['/', /is the folder itself/],
    ['./.', /is the folder itself/],
    ['..', /has the component "\.\."/],
    ['a/../b', /"a\/\.\.\/b" has the component "\.\."/],
    ['../../etc', /has the component "\.\."/],
    ['a\0b', /control character/],
    ['a\nb', /control character/],
    ['a'.repeat(256), /256 bytes, at most 255/],
    ['ä'.repeat(128), /256 bytes, at most 255/],
  ];
  for (const [text, message] of refused) {
    test(`refuses ${JSON.stringify(text.slice(0, 20))}`, () => {
      assert.throws(
        () => pathComponents(text),
        (error) => error instanceof PathError && message.test(error.message),
      );
    });
  }

  test('refuses a path of more than 4,095 bytes', () => {
    assert.throws(() => pathComponents('abcd/'.repeat(820)), /4099 bytes is too long/);
  });
});

describe('containedPath', () => {
  test('never leaves its folder', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', '.', '..', '/', '//', '\0', 'ü', ' ', '~')), (parts) => {
        const text = parts.join('');
        let joined: string;
        try {
          joined = containedPath('/srv/share', text);
        } catch (error) {
          assert.ok(error instanceof PathError);
          return;
        }
        assert.equal(path.posix.normalize(joined), joined);
        assert.ok(joined.startsWith('/srv/share/') && joined.length > '/srv/share/'.length, joined);
      }),
      { numRuns: 5000 },
    );
  });

  test('has no slash at its end, also below the root', () => {
    assert.equal(containedPath('/', 'a/b/'), '/a/b');
    assert.equal(containedPath('/exp/', 'ns/'), '/exp/ns');
  });
});
