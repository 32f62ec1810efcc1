import assert from 'node:assert/strict';
import { test } from 'node:test';
import { markEntries } from '../support/entered-files/mark-entries.ts';

const marked = (source: string): string => markEntries(source, { name: 'entered', file: 'a.ts' });

test('every kind of function reports by name that it was entered', () => {
  const cases = {
    'function f() { g(); }': 'function f() { entered("a.ts", "f"); g(); }',
    'const f = async () => { await g; };': 'const f = async () => { entered("a.ts", "f"); await g; };',
    'const f = () => g();': 'const f = () => (entered("a.ts", "f"), g());',
    'h(() => ({}));': 'h(() => (entered("a.ts", ""), ({})));',
    'h({ f: (a: A): B => a as B });': 'h({ f: (a: A): B => (entered("a.ts", "f"), a as B) });',
    'const f = () => () => 1;': 'const f = () => (entered("a.ts", "f"), () => (entered("a.ts", ""), 1));',
    'class C { constructor() {} get #p() { return 1; } }':
      'class C { constructor() { entered("a.ts", "constructor");} get #p() { entered("a.ts", "#p"); return 1; } }',
  };
  for (const [source, expected] of Object.entries(cases)) assert.equal(marked(source), expected);
});

test('what has no body stays as it is', () => {
  const source =
    'export function f(a: string): void;\nabstract class C { abstract m(): void }\ninterface I { m(): void }\n';
  assert.equal(marked(source), source);
});

test('a marked source has as many lines as before', () => {
  const source = 'export class C {\n  m(): number {\n    return [1].map((x) =>\n      x + 1)[0]!;\n  }\n}\n';
  assert.equal(marked(source).split('\n').length, source.split('\n').length);
});
