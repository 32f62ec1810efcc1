import assert from 'node:assert/strict';

/** One message of the live stream of the status page. */
export interface LiveMessage {
  time: string;
  text: string;
  parts: Record<string, string>;
}

/** Follows the live stream of a status page over HTTP. */
export class LiveReader implements AsyncDisposable {
  readonly messages: LiveMessage[] = [];
  /** Whether the stream has ended. */
  ended = false;
  readonly #leave = new AbortController();

  /** @throws when it is not let in. */
  static async open(url: string): Promise<LiveReader> {
    const reader = new LiveReader();
    const answer = await fetch(url, { signal: reader.#leave.signal });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    void reader.#read(answer.body as AsyncIterable<Uint8Array>).catch(() => (reader.ended = true));
    return reader;
  }

  async #read(body: AsyncIterable<Uint8Array>): Promise<void> {
    let text = '';
    for await (const chunk of body) {
      text += Buffer.from(chunk).toString();
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        if (block.startsWith('data: ')) this.messages.push(JSON.parse(block.slice(6)) as LiveMessage);
      }
    }
    this.ended = true;
  }

  leave(): void {
    this.#leave.abort();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.leave();
    return Promise.resolve();
  }
}
