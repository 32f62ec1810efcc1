import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { expandTemplate } from '../../../../src/csi/secrets/secret-reference.ts';

const values = new Map([
  ['a', 'A'],
  ['pv.name', 'pvc-1'],
  ["pvc.annotations['k']", ''],
  ["pvc.annotations['x']", '${a}'],
  ['1', 'one'],
]);

describe('expandTemplate', () => {
  const expanded: [string, string][] = [
    ['plain', 'plain'],
    ['', ''],
    ['${a}', 'A'],
    ['x${a}y', 'xAy'],
    ['$a', 'A'],
    ['$a-b', 'A-b'],
    ['${pv.name}', 'pvc-1'],
    ["x${pvc.annotations['k']}y", 'xy'],
    ["${pvc.annotations['x']}", '${a}'],
    ['a$', 'a$'],
    ['$', '$'],
    ['x${}y', 'xy'],
    ['x${y', 'xy'],
    ['${', ''],
    ['$ a', '$ a'],
    ['$.a', '$.a'],
    ['$/', '$/'],
    ['$1', 'one'],
    ['$12', 'one2'],
    ['${a}${a}', 'AA'],
  ];
  test('unknown tokens are in the order of their bytes', () => {
    const message = 'invalid tokens: ["Z" "a\u0301" "é" "\uff5e" "𝄞"]';
    assert.throws(() => expandTemplate('${𝄞}${\uff5e}${é}${a\u0301}$Z', new Map()), { message });
  });

  for (const [template, text] of expanded) {
    test(`${JSON.stringify(template)} gives ${JSON.stringify(text)}`, () =>
      assert.equal(expandTemplate(template, values), text));
  }

  const refused: [string, string][] = [
    ['$pvc.name', 'invalid tokens: ["pvc"]'],
    ['a$$b', 'invalid tokens: ["$"]'],
    ['${b} ${a} ${b} $c', 'invalid tokens: ["b" "c"]'],
    ['${z}${y}', 'invalid tokens: ["y" "z"]'],
    ['$*', 'invalid tokens: ["*"]'],
    ['$-', 'invalid tokens: ["-"]'],
    ['${q"q}', 'invalid tokens: ["q\\"q"]'],
    ['$_', 'invalid tokens: ["_"]'],
  ];
  for (const [template, message] of refused) {
    test(`${JSON.stringify(template)} is refused`, () =>
      assert.throws(() => expandTemplate(template, values), { name: 'TemplateError', message }));
  }

  test('a text without a dollar sign is its own expansion', () => {
    const plain = fc.string().filter((text) => !text.includes('$'));
    fc.assert(fc.property(plain, (text) => assert.equal(expandTemplate(text, values), text)));
  });

  test('braces around any known token give its value, whatever stands beside', () => {
    const plain = fc.string().filter((text) => !text.includes('$'));
    const token = fc.string({ minLength: 1 }).filter((text) => !text.includes('}'));
    fc.assert(
      fc.property(plain, token, fc.string(), plain, (before, name, value, after) => {
        assert.equal(expandTemplate(`${before}\${${name}}${after}`, new Map([[name, value]])), before + value + after);
      }),
    );
  });

  test('any text either expands or names tokens that it holds', () => {
    const text = fc.string({ unit: fc.constantFrom('$', '{', '}', 'a', 'b', '.', '1', '-', ' ') });
    fc.assert(
      fc.property(text, (template) => {
        try {
          assert.ok(expandTemplate(template, values).length <= template.length * 5);
        } catch (error) {
          const message = (error as Error).message;
          assert.match(message, /^invalid tokens: \[.+\]$/);
          for (const [, token = ''] of message.matchAll(/"([^"]*)"/g)) assert.ok(template.includes(token), message);
        }
      }),
    );
  });
});
