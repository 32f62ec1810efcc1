/** Titles, code and comments speak for themselves: no numbers of rules, and no title that leans on another. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';

const root = path.join(import.meta.dirname, '../..');
const self = path.relative(root, import.meta.filename);

const ruleNumbers = [
  /\b(?:KC|CP)-\d/, // of a list of cases
  /§/,
  /\bspec\/\d/,
  /\bchapter \d/i,
  /\b(?:rules?|rows?|issues?|sections?) \d+\b/i,
  /(?<!^\s*)\bcases? \d+\b/i, // not the label of a switch
  /\b[DNPSTWX]\d{1,2}\b/,
  /\bid: ['"`][A-Z]+-?\d/,
  /\b(?:test|describe)\(\s*['"`](?:[A-Z]{0,2}\d[\d.]*(?::|, [A-Z])|0\d )/,
];
/** Of a test or of a row that becomes one. */
const title = /\b(?:test|describe|suite)\(\s*(['"`])(.*?)\1|^\s*(?:\{ )?(?:name|title|row): (['"`])(.*?)\3/gm;
const leaning = /^(?:also|and|but|even|neither|nor|or|so|unless) /i;

function rulesIn(text: string): string[] {
  return text.split('\n').filter((line) => ruleNumbers.some((pattern) => pattern.test(line)));
}

function titlesIn(text: string): string[] {
  return [...text.matchAll(title)].map(([, , ofTest, , ofRow]) => ofTest ?? ofRow ?? '');
}

function doubledIn(text: string): string[] {
  const own = [...text.matchAll(/\btest\(\s*'(.*?)'/g)].map(([, each = '']) => each);
  return own.filter((each, index) => own.indexOf(each) !== index);
}

/** Findings by file; empty where all is well. */
function findings(folders: string[], find: (text: string) => string[]): string[] {
  return folders.flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
      .map((name) => path.join(folder, name))
      .filter((name) => /\.[jt]s$/.test(name) && !name.includes('/generated/') && name !== self)
      .flatMap((name) => find(readFileSync(path.join(root, name), 'utf8')).map((found) => `${name}: ${found.trim()}`)),
  );
}

describe('titles, code and comments', () => {
  test('name no number of a rule', () => {
    assert.deepEqual(findings(['src', 'sandbox', 'test'], rulesIn), []);
  });

  test('have no title that leans on the one before it', () => {
    const leaningIn = (text: string): string[] => titlesIn(text).filter((each) => leaning.test(each));
    assert.deepEqual(findings(['test'], leaningIn), []);
  });

  test('have no title twice in a file', () => {
    assert.deepEqual(findings(['test'], doubledIn), []);
  });
});

describe('the search for numbers of rules', () => {
  for (const line of [
    "  test('KC-9.2: a lease is renewed', async () => {",
    "  test('02 section: a claim', () => {",
    "  test('46, D24: a secret', () => {",
    '/** Cases 97 to 104: populators. */',
    '// as in case 12',
    '// spec/03 says so',
    '/** Signals as chapter 01 has them. */',
    "{ id: 'T01', cluster: 'one zone' },",
    "  test('waiting claims occupy no worker (W19)', async () => {",
    '// the text is a difference (X13)',
    '// row 7 of the table',
  ]) {
    test(`finds ${line.trim()}`, () => {
      assert.deepEqual(rulesIn(`const before = 1;\n${line}\n`), [line]);
    });
  }

  for (const line of ['      case 2: {', "test('2,000 claims are bound', () => {", "import { v1 } from './v1.ts';"]) {
    test(`passes over ${line.trim()}`, () => {
      assert.deepEqual(rulesIn(line), []);
    });
  }

  test('reads titles of tests and of rows', () => {
    assert.deepEqual(titlesIn("test('even when empty', () => {\n    { name: 'nor one', want: 1 },\n"), [
      'even when empty',
      'nor one',
    ]);
    assert.deepEqual(doubledIn("test('a', one);\ntest('b', two);\ntest('a', three);"), ['a']);
  });
});
