/** docs/stuck-claims.md against the rows that arrange its situations. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import type { Row } from '../../support/claim-rows/row.ts';
import { rows } from '../../support/claim-rows/rows.ts';

const page = readFileSync(path.join(import.meta.dirname, '../../../docs/stuck-claims.md'), 'utf8');

interface Line {
  cause: string;
  tested: string;
}

/** The lines of its tables, without heads and rules. */
function linesOf(text: string): Line[] {
  return text
    .split('\n')
    .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()))
    .filter((cells) => cells.length === 7 && cells[5] !== 'tested' && !/^-+$/.test(cells[1] ?? ''))
    .map(([, , , cause = '', , tested = '']) => ({ cause, tested }));
}

/** Where a row runs, in the word of the page. */
function levelOf({ recorded, cluster }: Row): string {
  const isOnCluster = typeof cluster !== 'object';
  if (recorded === undefined) return isOnCluster ? 'cluster' : 'nowhere';
  return isOnCluster ? 'both' : 'recorded';
}

const stuck = rows.flatMap((row) => ('healthy' in row ? [] : [row]));

describe('docs/stuck-claims.md', () => {
  const lines = linesOf(page);

  test('names for each refusal a row that arranges it, and where it runs', () => {
    const named = lines.map(({ tested }) => tested).filter((tested) => !tested.startsWith('cannot be told apart'));
    const known = stuck.map((row) => `${row.title} (${levelOf(row)})`);
    assert.deepEqual(
      named.filter((each) => !known.includes(each)),
      [],
    );
    assert.deepEqual(
      known.filter((each) => !named.includes(each)),
      [],
    );
  });

  test('names the cause that the row expects', () => {
    for (const row of stuck) {
      const line = lines.find(({ tested }) => tested.startsWith(`${row.title} (`));
      assert.ok(line?.cause.startsWith(`\`${row.cause ?? 'unknown'}\``), `${row.title}: ${line?.cause ?? ''}`);
    }
    assert.ok(lines.length > 0);
  });

  test('says how many rows there are, and how many run on a control plane', () => {
    const isOn = (level: string): number => stuck.filter((row) => [level, 'both'].includes(levelOf(row))).length;
    const want = `${stuck.length} rows arrange a situation: ${isOn('cluster')} on a control plane, and ${isOn('recorded')} as recorded objects.`;
    assert.ok(page.replaceAll(/\s+/g, ' ').includes(want), want);
  });

  test('has rows of different titles', () => {
    const titles = rows.map(({ title }) => title);
    assert.deepEqual(
      titles.filter((title, index) => titles.indexOf(title) !== index),
      [],
    );
  });
});
