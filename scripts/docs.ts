/**
 * Generates the part of docs/flags.md that comes from the sources: the flags, from src/cli/flags.ts.
 *
 *   node scripts/docs.ts           rewrites the file
 *   node scripts/docs.ts --check   changes nothing; exits 1 when the file is stale
 */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { flagTableMarkdown, withSection } from './flags-markdown.ts';

const file = path.join(import.meta.dirname, '../docs/flags.md');
const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });

const present = await readFile(file, 'utf8');
const fresh = withSection(present, 'flags', flagTableMarkdown());
if (fresh === present) console.log('docs/flags.md is fresh');
else if (values.check) {
  console.error('docs/flags.md is stale: run npm run docs');
  process.exitCode = 1;
} else {
  await writeFile(file, fresh);
  console.log('docs/flags.md rewritten');
}
