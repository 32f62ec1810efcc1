/** docs/architecture.md, "The path of a claim", against the files and functions that the sidecar enters for one; and that of a found record. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import type { Entry } from '../support/entered-files/entered-files.ts';
import { recordClaim } from '../support/entered-files/record-claim.ts';

/** Without a name: the first function of the file that is entered. */
interface Step {
  file: string;
  name: string | undefined;
}

/** More than that nobody reads. */
const maxSteps = 25;

describe('the path of a claim in docs/architecture.md', () => {
  let section: string;
  let steps: Step[];
  let entries: readonly Entry[];

  before(async () => {
    const page = await readFile(path.join(import.meta.dirname, '../../docs/architecture.md'), 'utf8');
    section = page.split(/^## /m).find((text) => text.startsWith('The path of a claim\n')) ?? '';
    steps = rowsOf(section, 'function').map(([file = '', name = '']) => ({
      file: codes(file)[0]!,
      name: codes(name)[0],
    }));
    entries = await recordClaim({ files: steps.map(({ file }) => file) }); // also: each of them is entered
  });

  test(`is one table with ${maxSteps} rows at most`, () => {
    assert.equal(section.match(/^\| -/gm)?.length, 1);
    assert.ok(steps.length <= maxSteps, `it has ${steps.length}`);
  });

  test('has the steps in the order in which they are entered', () => {
    const found = steps.map((step) => ({ ...step, position: firstEntry(entries, step) }));
    assert.deepEqual(
      found.filter(({ position }) => position < 0),
      [],
      'no such function is entered',
    );
    assert.deepEqual(
      found.toSorted((one, other) => one.position - other.position),
      found,
    );
  });
});

const root = path.join(import.meta.dirname, '../..');

describe('where to find what in docs/architecture.md', () => {
  test('names functions of the files that it names', async () => {
    const page = await readFile(path.join(root, 'docs/architecture.md'), 'utf8');
    const section = page.split(/^## /m).find((text) => text.startsWith('Where to find what\n')) ?? '';
    const named = Array.from(section.matchAll(/`([\w/-]+\.ts)` \(([^)]+)\)/g), ([, file = '', names = '']) => ({
      file,
      names: codes(names),
    }));
    assert.ok(named.length > 10, String(named.length));
    for (const { file, names } of named) {
      const source = await readFile(path.join(root, file), 'utf8');
      for (const name of names) {
        const declared = new RegExp(
          `^(export )?((async )?function|const|class) ${name}\\b|^  (async )?${name}\\(.*\\{$`,
          'm',
        );
        assert.match(source, declared, `${file}: ${name}`);
      }
    }
  });
});

describe('the path of a found record in docs/architecture.md', () => {
  test('has functions of the files that it names', async () => {
    const page = await readFile(path.join(root, 'docs/architecture.md'), 'utf8');
    const section = page.split(/^### /m).find((text) => text.startsWith('The path of a found record\n')) ?? '';
    const missing: string[] = [];
    for (const [file = '', names = ''] of rowsOf(section, 'function')) {
      const source = await readFile(path.join(root, codes(file)[0]!), 'utf8');
      const defined = new Set(
        Array.from(source.matchAll(/^ *(?:export )?(?:async )?(?:function )?(#?\w+)\((?!.*;$)/gm), ([, name]) => name),
      );
      for (const name of codes(names)) if (!defined.has(name)) missing.push(`${file} ${name}`);
    }
    assert.deepEqual(missing, []);
  });
});

/** The cells of the table whose second column has this title. */
function rowsOf(section: string, title: string): string[][] {
  const tables = section.split('\n\n').map((block) =>
    block.split('\n').map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    ),
  );
  const table = tables.find(([head]) => head?.[1] === title);
  assert.ok(table, `no table has the column "${title}"`);
  return table.slice(2).filter((cells) => cells.length > 0);
}

/** What stands in backticks. */
function codes(cell: string): string[] {
  return Array.from(cell.matchAll(/`([^`]+)`/g), ([, code = '']) => code);
}

function firstEntry(entries: readonly Entry[], { file, name }: Step): number {
  return entries.findIndex((entry) => entry.file === file && (name === undefined || entry.name === name));
}
