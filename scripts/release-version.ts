/**
 * `npm run release:version -- 1.2.3`: what the commit of a release changes. The version in package.json and package-lock.json, and wherever
 * manifests, charts and pages have it; and in CHANGELOG.md the name and date of what was "Unreleased".
 */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { runTool } from './image/run-tool.ts';
import { readManifest } from './package/repository.ts';
import { scriptCommand } from './script-command.ts';

const root = path.join(import.meta.dirname, '..');
/** Where the version stands for the newest release, and not for the one since which there is something. */
const places = ['README.md', 'Dockerfile', 'deploy', 'docs', 'provisioners'];
const heading = '## Unreleased\n';

const command = scriptCommand('npm run release:version --', 'Gives the sources the version of the next release.')
  .argument('<X.Y.Z>', 'the version')
  .parse();
const [version = ''] = command.args;
if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) command.error(`${version} is no version such as 1.2.3`);

const changelog = await readFile(path.join(root, 'CHANGELOG.md'), 'utf8');
if (!changelog.includes(heading)) command.error(`CHANGELOG.md has no section "${heading.trim()}"`);
const { version: former } = await readManifest(root);
const date = new Date().toISOString().slice(0, 10);
await writeFile(path.join(root, 'CHANGELOG.md'), changelog.replace(heading, `## ${version} - ${date}\n`));
const flags = ['--no-git-tag-version', '--allow-same-version'];
await runTool('npm', ['version', '--prefix', root, ...flags, version]);
const listed = await runTool('git', ['-C', root, 'grep', '-lIF', former, '--', ...places]);
const whole = new RegExp(String.raw`(?<![\d.])${former.replaceAll('.', String.raw`\.`)}(?!\.?\d)`, 'g');
for (const file of listed.trim().split('\n')) {
  const text = await readFile(path.join(root, file), 'utf8');
  await writeFile(path.join(root, file), text.replaceAll(whole, version));
}
console.log(`${former} is ${version} now; see git diff --stat`);
