import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

/** The packages that the modules and declarations in a folder import. */
export async function importedPackages(folder: string): Promise<Set<string>> {
  const found = new Set<string>();
  for (const file of await readdir(folder, { recursive: true })) {
    if (!/\.(js|d\.ts)$/.test(file)) continue;
    const text = await readFile(path.join(folder, file), 'utf8');
    for (const [, name = ''] of text.matchAll(/\b(?:from|import)\s*\(?\s*['"]((?:@[\w.-]+\/)?[\w.-]+)[^'"]*['"]/g)) {
      if (!name.startsWith('.')) found.add(name);
    }
  }
  return found;
}
