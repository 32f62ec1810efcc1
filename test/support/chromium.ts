/** A real Chromium, where there is one: `$CHROMIUM`, else that of the distribution. */
import { access, constants, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type BrowserContext, chromium } from 'playwright-core';
import { patienceMs } from './patience.ts';

const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

/** Why there is nothing to test with; undefined when there is. */
export async function missingChromium(): Promise<string | undefined> {
  try {
    await access(executablePath, constants.X_OK);
    return undefined;
  } catch {
    return `NOT tested: no Chromium at ${executablePath}; install one (apt-get install chromium), or set CHROMIUM`;
  }
}

/** A browser with a profile of its own, which is gone with it. It talks to nobody by itself; to it `*.example.com` is here. */
export interface Chromium extends AsyncDisposable {
  readonly context: BrowserContext;
}

export async function startChromium(): Promise<Chromium> {
  const profile = await mkdtemp(path.join(tmpdir(), 'chromium-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    timeout: patienceMs,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--host-resolver-rules=MAP *.example.com 127.0.0.1',
    ],
  });
  context.setDefaultTimeout(patienceMs);
  return {
    context,
    [Symbol.asyncDispose]: async () => {
      await context.close();
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
