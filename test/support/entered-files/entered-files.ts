/** Which source files a program enters, in the order in which it does. Module code that runs at the import does not count. */
import { registerHooks } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { markEntries } from './mark-entries.ts';

const root = path.join(import.meta.dirname, '../../..');
const sources = pathToFileURL(path.join(root, 'src/')).href;
const reportName = '__entered';

/** A function that was entered. */
export interface Entry {
  /** Relative to the repository, such as `src/base/permit.ts`. */
  file: string;
  /** Empty for one without a name. */
  name: string;
}

/** To be made before the first module of `src` is imported, once in a process. Nothing is recorded until `start`. */
export class EnteredFiles {
  #entries: Entry[] | undefined;

  constructor() {
    Object.assign(globalThis, { [reportName]: (file: string, name: string) => this.#entries?.push({ file, name }) });
    registerHooks({
      load(url, context, nextLoad) {
        const loaded = nextLoad(url, context);
        if (!url.startsWith(sources)) return loaded;
        const file = path.relative(root, fileURLToPath(url));
        const { source } = loaded;
        const text = typeof source === 'string' ? source : new TextDecoder().decode(source);
        return { ...loaded, source: markEntries(text, { name: reportName, file }) };
      },
    });
  }

  start(): void {
    this.#entries = [];
  }

  /** All since `start`, in their order. */
  get entries(): readonly Entry[] {
    return this.#entries ?? [];
  }
}
