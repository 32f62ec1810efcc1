/** Calls over a bus that stops responding at any point. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { GaneshaBus } from '../../../provisioners/nfs-server/ganesha-bus.ts';

describe('a call to a bus that', () => {
  let folder: string;
  let socket: string;
  let server: Server;
  const clients = new Set<Socket>();

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'bus-'));
    socket = path.join(folder, 'bus');
  });
  afterEach(async () => {
    mock.timers.reset();
    for (const client of clients) client.destroy();
    clients.clear();
    server.close();
    await rm(folder, { recursive: true });
  });

  for (const { title, answers } of [
    { title: 'accepts connections and says nothing', answers: {} },
    { title: 'accepts a client and does not greet it', answers: { AUTH: 'OK 1234\r\n', NEGOTIATE: 'ERROR\r\n' } },
  ] as { title: string; answers: Record<string, string> }[]) {
    test(`${title} ends when its signal says so, and has no effect later`, async () => {
      const asked = Promise.withResolvers<undefined>();
      server = createServer({ allowHalfOpen: true }, (client) => {
        clients.add(client);
        client.on('error', () => undefined);
        client.on('data', (data) => {
          const word = Object.keys(answers).find((each) => data.includes(each));
          if (word === undefined) asked.resolve(undefined);
          else client.write(answers[word] ?? '');
        });
      });
      server.listen(socket);
      await once(server, 'listening');
      mock.timers.enable({ apis: ['setTimeout'] });
      const over = new AbortController();
      const call = new GaneshaBus(socket).ping(over.signal);
      await asked.promise;
      over.abort();
      await assert.rejects(call, /^Error: GetId: no response in time$/);
      mock.timers.tick(60_000); // an error of the library would be thrown here
      const [client] = clients;
      if (client?.closed === false) await once(client, 'end'); // its connection is not kept
    });
  }
});
