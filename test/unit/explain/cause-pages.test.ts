/** The causes of `why` against docs/why.md, and its reading of events against docs/troubleshooting.md. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { causes, type Cause } from '../../../src/explain/causes/cause.ts';
import { knownFinalizers } from '../../../src/explain/known-finalizers.ts';
import { failureMeaning, waitMeaning } from '../../../src/explain/causes/causes.ts';

const read = (name: string): string => readFileSync(path.join(import.meta.dirname, '../../../docs', name), 'utf8');
const isCause = (text: string): text is Cause => (causes as readonly string[]).includes(text);

/** Texts and cause of the rows of tables with a column `why`. */
function rowsWithCause(page: string): { texts: string[]; cause: string }[] {
  const rows: { texts: string[]; cause: string }[] = [];
  let column = -1;
  let textColumn = -1;
  for (const line of page.split('\n')) {
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    if (!line.startsWith('|')) column = -1;
    else if (cells.includes('`why`')) {
      column = cells.indexOf('`why`');
      textColumn = cells.indexOf('Text');
    } else if (column !== -1 && !/^-+$/.test(cells[1] ?? '')) {
      const texts = [...(cells[textColumn] ?? '').matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);
      rows.push({ texts, cause: cells[column]?.replaceAll('`', '') ?? '' });
    }
  }
  return rows;
}

test('docs/why.md has a row for each cause, and no other', () => {
  const told = [...read('why.md').matchAll(/^\| `([a-z][a-z-]+)` +\|/gm)].map(([, cause = '']) => cause);
  assert.deepEqual([...new Set(told)].toSorted(), [...causes].toSorted());
});

test('docs/why.md has a row for each known finalizer, its owner and when it goes', () => {
  const [, section = ''] = read('why.md').split('## Finalizers\n');
  const rows = [...(section.split('\n## ')[0] ?? '').matchAll(/^\| `([^`]+)` +\| (.*?) +\| (.*?) +\|$/gm)];
  assert.deepEqual(
    rows.map(([, finalizer, owner, removed]) => ({ finalizer, owner, removed })),
    knownFinalizers.map(({ prefix = '', suffix = '', owner, removed }) => ({
      finalizer: prefix.endsWith('/') ? `${prefix}...` : prefix === '' ? `...${suffix}` : prefix,
      owner,
      removed,
    })),
  );
});

describe('docs/troubleshooting.md', () => {
  const rows = rowsWithCause(read('troubleshooting.md'));

  test('names causes that there are', () => {
    assert.ok(rows.length > 40, String(rows.length));
    for (const { texts, cause } of rows) {
      for (const each of cause.split(', ')) assert.ok(each === '' || isCause(each), `${texts[0] ?? ''}: ${each}`);
    }
  });

  test('says of each text about a failed attempt what why makes of it', () => {
    const checked = rows.flatMap(({ texts, cause }) =>
      texts.filter((text) => text.includes(' ') && !otherEvents.test(text)).map((text) => ({ text, cause })),
    );
    for (const { text, cause } of checked.filter((each) => !ofVolumes.has(each.cause))) {
      const named = text.startsWith('Waiting') ? waitMeaning(text)?.cause : failureMeaning(text).cause;
      assert.equal(named, cause, text);
    }
    assert.ok(checked.length > 40, String(checked.length));
  });
});

/** Texts of events that are no failures, and no waits of claims. */
const otherEvents =
  /^(External provisioner|Assuming|Successfully|Volume attributes class|The driver created volume NAME where|The cloning protection|Waiting until the volume of claim NAME|Waiting until claim NAME|HOST |persistentvolume NAME is deleted |Not permitted to hold the lease |A standby waits for |The storage is deleted, |the cache of )/;
const ofVolumes: ReadonlySet<string> = new Set(['delete-error', 'attached', 'shared-storage', 'other-source']);
