/**
 * The API reports: what each entry of the package exports, in api/. A change of the public surface is a change of these files, which
 * reviewers see; docs/versioning.md says what may change.
 *
 *   node scripts/api.ts           writes them
 *   node scripts/api.ts --check   changes nothing; exits 1 and shows the difference when one is stale
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { changedLines } from './api/changed-lines.ts';
import { writeReports } from './api/write-reports.ts';

const root = path.join(import.meta.dirname, '..');
const present = path.join(root, 'api');
const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });

async function check(): Promise<void> {
  const made = path.join(root, '.cache/api-reports');
  for (const name of await writeReports(made)) {
    const [before, after] = await Promise.all([present, made].map((folder) => textOf(path.join(folder, name))));
    const changes = changedLines(before ?? '', after ?? '');
    if (changes.length === 0) continue;
    console.error(`api/${name} is stale: see docs/versioning.md, then run npm run api\n${changes.join('\n')}`);
    process.exitCode = 1;
  }
  if (process.exitCode !== 1) console.log('the API reports are fresh');
}

async function textOf(file: string): Promise<string> {
  return await readFile(file, 'utf8').catch(() => '');
}

if (values.check) await check();
else for (const name of await writeReports(present)) console.log(`api/${name}`);
