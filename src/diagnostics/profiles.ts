import type { Session } from 'node:inspector/promises';
import { type DiagnosticsServer, type Handler, sendFile, sendHtml, sendNotFound, sendText } from './http-server.ts';
import { profilesPath } from './http-paths.ts';

/** One sample per this many allocated bytes: rare enough to cost nothing, often enough to find what grows. */
const heapSamplingBytes = 512 * 1024;

const maxProfileSeconds = 300;

const index = `<!doctype html>
<html lang="en">
<title>Profiles</title>
<h1>Profiles of this process</h1>
<p>Save a file and open it in the developer tools of Chrome, or with speedscope.
<ul>
<li><a href="profile?seconds=30">profile</a>: CPU time of the next <code>seconds</code> (1 to ${maxProfileSeconds}),
a .cpuprofile file. One at a time.
<li><a href="heap">heap</a>: where the memory now in use was allocated, a .heapprofile file. Sampled, without contents.
</ul>
</html>
`;

/**
 * Serves profiles below `/debug/pprof/`, from memory samples taken since `startProfiles`. Under every host name, unlike the status
 * page: profilers reach it by names that cannot be known, and the profiles hold nothing confidential.
 */
class Profiles implements AsyncDisposable {
  readonly #session: Session;
  #cpuProfileRuns = false;
  #heapProfiles: Promise<Buffer> | undefined;

  /** Use `startProfiles`. */
  constructor(session: Session) {
    this.#session = session;
  }

  /** Adds the paths to a server. */
  serveOn(server: DiagnosticsServer): void {
    const handlers = new Map<string, Handler>([
      ['', (_request, response) => sendHtml(response, index)],
      ['profile', (request, response) => this.#cpuProfile(request, response)],
      ['heap', (request, response) => this.#heapProfile(request, response)],
    ]);
    server.handle(profilesPath, async (request, response) => {
      const name = (request.url ?? '').replace(/[?#].*$/s, '').slice(profilesPath.length);
      const handler = handlers.get(name);
      if (handler === undefined) sendNotFound(response);
      else await handler(request, response);
    });
  }

  readonly #cpuProfile: Handler = async (request, response) => {
    const seconds = Number(new URLSearchParams((request.url ?? '').split('?')[1]).get('seconds') ?? '30');
    if (!(seconds > 0 && seconds <= maxProfileSeconds)) {
      sendText(response, 400, `seconds must be a number above 0, at most ${maxProfileSeconds}\n`);
      return;
    }
    if (this.#cpuProfileRuns) {
      sendText(response, 503, 'another CPU profile is being taken\n');
      return;
    }
    this.#cpuProfileRuns = true;
    try {
      response.socket?.setTimeout(0); // quiet for as long as the profile takes
      await this.#session.post('Profiler.start');
      await elapsed(seconds * 1000, response);
      const { profile } = await this.#session.post('Profiler.stop');
      sendFile(response, 'cpu.cpuprofile', JSON.stringify(profile));
    } finally {
      this.#cpuProfileRuns = false;
    }
  };

  readonly #heapProfile: Handler = async (_request, response) => {
    // requests that come while one is being made share it, however many there are
    this.#heapProfiles ??= this.#readHeap().finally(() => (this.#heapProfiles = undefined));
    sendFile(response, 'heap.heapprofile', await this.#heapProfiles);
  };

  async #readHeap(): Promise<Buffer> {
    const { profile } = await this.#session.post('HeapProfiler.getSamplingProfile');
    return Buffer.from(JSON.stringify(profile));
  }

  /** Ends sampling. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session.post('HeapProfiler.stopSampling');
    this.#session.disconnect();
  }
}

/**
 * Begins to sample allocations. Nothing that is served holds contents of strings, secrets and tokens among them: everybody who
 * can reach the port may read it.
 */
export async function startProfiles(): Promise<Profiles> {
  const inspector = await import('node:inspector/promises'); // expensive, and few processes need it
  const session = new inspector.Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('HeapProfiler.startSampling', { samplingInterval: heapSamplingBytes });
  return new Profiles(session);
}

type Response = Parameters<Handler>[1];

/** Resolves after that time, or as soon as the client has gone. */
async function elapsed(milliseconds: number, response: Response): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, milliseconds, undefined);
  response.once('close', () => resolve(undefined));
  await promise;
  clearTimeout(timer);
}
