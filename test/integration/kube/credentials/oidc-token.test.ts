import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import { systemClock } from '../../../../src/base/clock.ts';
import { OidcToken } from '../../../../src/kube/credentials/oidc-token.ts';

/** A token that expires so many seconds from now. */
function idToken(seconds: number): string {
  const payload = { exp: Math.floor(systemClock.wallMs() / 1000) + seconds };
  return ['{}', JSON.stringify(payload), ''].map((part) => Buffer.from(part).toString('base64url')).join('.');
}

describe('the token of an identity provider', () => {
  let issuer: string;
  let respond: (request: http.IncomingMessage, form: URLSearchParams) => object | number;
  let requests: { path: string; authorization: string | undefined; form: Record<string, string> }[] = [];
  const server = http.createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      const form = new URLSearchParams(body);
      requests.push({
        path: request.url ?? '',
        authorization: request.headers.authorization,
        form: Object.fromEntries(form),
      });
      const answer = request.method === 'GET' ? { token_endpoint: `${issuer}/token` } : respond(request, form);
      response.statusCode = typeof answer === 'number' ? answer : 200;
      response.end(JSON.stringify(answer));
    });
  });
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => server.close());
  beforeEach(() => (requests = []));

  const expired = (): Record<string, string> => ({
    'id-token': idToken(-60),
    'refresh-token': 'first',
    'client-id': 'us',
    'idp-issuer-url': `${issuer}/`,
  });

  test('is the one of the kubeconfig until it expires', async () => {
    const valid = idToken(60);
    assert.equal(await new OidcToken({ ...expired(), 'id-token': valid }, systemClock).token(), valid);
    assert.deepEqual(requests, []);
  });

  test('is refreshed once it has expired, the next time with the refresh token that came along', async () => {
    const answers = [
      { id_token: idToken(-1), refresh_token: 'second' },
      { id_token: idToken(60), refresh_token: 'third' },
    ];
    respond = () => answers.shift() ?? 500;
    const oidc = new OidcToken(expired(), systemClock);
    await oidc.token();
    const token = await oidc.token();
    assert.equal(await oidc.token(), token);
    const sent = requests.filter(({ path }) => path === '/token').map(({ form }) => form);
    const form = { grant_type: 'refresh_token', client_id: 'us' };
    assert.deepEqual(sent, [
      { ...form, refresh_token: 'first' },
      { ...form, refresh_token: 'second' },
    ]);
    assert.equal(requests[0]?.path, '/.well-known/openid-configuration');
  });

  test('that cannot be read counts as expired, and a client with a secret says it', async () => {
    respond = () => ({ id_token: idToken(60) });
    await new OidcToken({ ...expired(), 'id-token': 'x', 'client-secret': 'a b' }, systemClock).token();
    const { authorization = '' } = requests.at(-1) ?? {};
    assert.equal(Buffer.from(authorization.replace('Basic ', ''), 'base64').toString(), 'us:a%20b');
  });

  test('is none where it has expired and nothing says how to refresh it, or where it was never there', async () => {
    for (const missing of ['refresh-token', 'client-id', 'idp-issuer-url', 'id-token']) {
      assert.equal((await new OidcToken({ ...expired(), [missing]: '' }, systemClock).token()) || undefined, undefined);
    }
    assert.deepEqual(requests, []);
  });

  for (const { title, answer, message } of [
    { title: 'refuses', answer: 400, message: /\/token responded with status 400$/ },
    { title: 'gives no token', answer: {}, message: /the response has no id_token$/ },
  ]) {
    test(`is an error of the request where the provider ${title}`, async () => {
      respond = () => answer;
      await assert.rejects(new OidcToken(expired(), systemClock).token(), { message });
    });
  }
});
