/**
 * Makes the part of README.md that comes from the sources: the flags, from src/cli/flags.ts.
 *
 *   node scripts/readme.ts           rewrites the file
 *   node scripts/readme.ts --check   changes nothing; exits 1 when the file is stale
 */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { flagTableMarkdown } from '../src/cli/flags-markdown.ts';
import { withSection } from './marked-section.ts';

const file = path.join(import.meta.dirname, '../README.md');
const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });

const present = await readFile(file, 'utf8');
const fresh = withSection(present, 'flags', flagTableMarkdown());
if (fresh === present) console.log('README.md is fresh');
else if (values.check) {
  console.error('README.md is stale: run npm run readme');
  process.exitCode = 1;
} else {
  await writeFile(file, fresh);
  console.log('README.md rewritten');
}
