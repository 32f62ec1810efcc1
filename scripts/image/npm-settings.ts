import { existsSync } from 'node:fs';
import { runTool } from './run-tool.ts';

/**
 * Arguments of a build that hand the user's npm settings to the Dockerfile's `npm ci`, as the secret it mounts: a
 * registry of one's own, say. Nothing of them gets into an image.
 */
export async function npmSettings(): Promise<string[]> {
  const file = await npmConfig('userconfig');
  return existsSync(file) ? ['--secret', `id=npmrc,src=${file}`] : [];
}

/** One of npm's settings on this machine, as text. */
export async function npmConfig(name: string): Promise<string> {
  return (await runTool('npm', ['config', 'get', name])).trim();
}
