/** docs/preflight.md against the findings and features that there are. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { findingNames } from '../../../../src/cli/preflight/findings/preflight-finding.ts';
import { definitions } from '../../../../src/cli/preflight/findings/findings.ts';
import { rightsFeatures } from '../../../../src/cli/preflight/needed-rights.ts';

const page = readFileSync(path.join(import.meta.dirname, '../../../../docs/preflight.md'), 'utf8');

/** The first cells of the rows of a section, without their quotes. */
function rowsOf(heading: string): string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^\| `([a-z][a-z-]+)` +\|/gm)].map(([, name = '']) => name);
}

test('docs/preflight.md has a row for each finding, and no other', () => {
  assert.deepEqual(rowsOf('Findings').toSorted(), [...findingNames].toSorted());
});

test('docs/preflight.md has a row for each feature that needs rights, and no other', () => {
  assert.deepEqual(rowsOf('Rights').toSorted(), [...rightsFeatures].toSorted());
});

test('each finding has one definition', () => {
  assert.deepEqual(definitions.map(({ name }) => name).toSorted(), [...findingNames].toSorted());
});
