import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  AlreadyExistsError,
  ApiError,
  ConflictError,
  errorFromAnswer,
  errorFromStatus,
  ExpiredError,
  ForbiddenError,
  InvalidError,
  isConnectionRefused,
  isRefusal,
  isVersionUnavailable,
  isUnservedResource,
  NotFoundError,
  TooManyRequestsError,
  TransportError,
  UnauthorizedError,
  type RequestInfo,
} from '../../../src/kube/api-error.ts';

const resource = {
  group: 'storage.k8s.io',
  version: 'v1',
  plural: 'storageclasses',
  kind: 'StorageClass',
  namespaced: false,
};
const update: RequestInfo = { verb: 'update', resource, name: 'fast' };
const create: RequestInfo = { verb: 'create', resource, name: 'fast' };

describe('errorFromAnswer', () => {
  const bare = [
    { code: 400, reason: 'BadRequest', ErrorClass: ApiError },
    { code: 401, reason: 'Unauthorized', ErrorClass: UnauthorizedError },
    { code: 403, reason: 'Forbidden', ErrorClass: ForbiddenError },
    { code: 404, reason: 'NotFound', ErrorClass: NotFoundError },
    { code: 405, reason: 'MethodNotAllowed', ErrorClass: ApiError },
    { code: 406, reason: 'NotAcceptable', ErrorClass: ApiError },
    { code: 409, reason: 'Conflict', ErrorClass: ConflictError },
    { code: 410, reason: 'Gone', ErrorClass: ExpiredError },
    { code: 415, reason: 'UnsupportedMediaType', ErrorClass: ApiError },
    { code: 422, reason: 'Invalid', ErrorClass: InvalidError },
    { code: 429, reason: 'TooManyRequests', ErrorClass: TooManyRequestsError },
    { code: 500, reason: 'InternalError', ErrorClass: ApiError },
    { code: 502, reason: 'InternalError', ErrorClass: ApiError },
    { code: 503, reason: 'ServiceUnavailable', ErrorClass: ApiError },
    { code: 504, reason: 'Timeout', ErrorClass: ApiError },
    { code: 418, reason: '', ErrorClass: ApiError },
  ];
  for (const { code, reason, ErrorClass } of bare) {
    test(`takes a ${code} without a Status for ${reason || 'no known reason'}`, () => {
      const error = errorFromAnswer(code, ' upstream says no \n', update);
      assert.equal(error.constructor, ErrorClass);
      assert.deepEqual([error.code, error.reason, error.message], [code, reason, 'upstream says no']);
    });
  }

  test('a bare 409 to a POST means that the name is taken', () => {
    assert.ok(errorFromAnswer(409, '', create) instanceof AlreadyExistsError);
  });

  test('keeps 2,048 characters of a text, and names the request where there is none', () => {
    assert.equal(errorFromAnswer(500, 'x'.repeat(5000), update).message.length, 2048);
    assert.equal(errorFromAnswer(500, '', update).message, 'the server responded with 500 to update storageclasses');
  });

  test('the reason of a Status decides, not the code', () => {
    const body = (reason: string): string =>
      JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code: 409, message: 'm' });
    assert.ok(errorFromAnswer(409, body('AlreadyExists'), update) instanceof AlreadyExistsError);
    assert.ok(errorFromAnswer(409, body('Conflict'), create) instanceof ConflictError);
    assert.equal(errorFromAnswer(409, body('ServerTimeout'), create).constructor, ApiError);
  });

  test('the code decides where the reason of a Status is missing or not of the API, as in the denial of a webhook', () => {
    const denial = (code: number, reason?: string): ApiError =>
      errorFromStatus({ code, message: 'm', ...(reason !== undefined && { reason }) }, create);
    for (const reason of [undefined, '', 'images must come from our registry']) {
      assert.equal(denial(403, reason).constructor, ForbiddenError);
      assert.equal(denial(404, reason).constructor, NotFoundError);
      assert.equal(denial(409, reason).constructor, ConflictError);
      assert.equal(denial(422, reason).constructor, InvalidError);
      assert.equal(denial(400, reason).constructor, ApiError);
      assert.equal(denial(500, reason).constructor, ApiError);
    }
  });

  test('JSON that is no Status is taken as text', () => {
    const error = errorFromAnswer(404, '{"kind":"Other","apiVersion":"v1","reason":"Conflict"}', update);
    assert.ok(error instanceof NotFoundError);
    assert.match(error.message, /"Other"/);
    assert.ok(errorFromAnswer(404, 'null', update) instanceof NotFoundError);
  });

  test('keeps the seconds the server asked for', () => {
    assert.equal(errorFromAnswer(429, '', update, 7).retryAfterS, 7);
  });
});

describe('what an error says', () => {
  test('a missing permission comes as the rule to add', () => {
    const info = { verb: 'patch', resource, name: 'fast', subresource: 'status' };
    const error = errorFromStatus({ reason: 'Forbidden', code: 403, message: 'no' }, info);
    assert.ok(error instanceof ForbiddenError);
    assert.equal(
      error.missingRule,
      '- apiGroups: ["storage.k8s.io"]\n  resources: ["storageclasses/status"]\n  verbs: ["patch"]',
    );
  });

  test('the rule to add has all verbs that the resource is used with, and both of a cache', () => {
    const ruleFor = (info: Partial<RequestInfo>): string => {
      const error = errorFromStatus({ reason: 'Forbidden', code: 403 }, { verb: 'create', resource, ...info });
      assert.ok(error instanceof ForbiddenError);
      return error.missingRule;
    };
    const declared = { ...resource, verbs: ['get', 'create'] };
    assert.match(ruleFor({ resource: declared }), /verbs: \["get", "create"\]$/);
    assert.match(ruleFor({ resource: declared, verb: 'patch' }), /verbs: \["get", "create", "patch"\]$/);
    assert.match(ruleFor({ verb: 'watch' }), /verbs: \["list", "watch"\]$/);
    const path = { group: '', version: '', plural: '/apis/x.io/v1', kind: '', namespaced: false };
    assert.equal(ruleFor({ resource: path, verb: 'get' }), '- nonResourceURLs: ["/apis/x.io/v1"]\n  verbs: ["get"]');
  });

  for (const { message, isAdmission } of [
    {
      message:
        'persistentvolumes is forbidden: User "system:serviceaccount:a:b" cannot create resource "persistentvolumes" in API group "" at the cluster scope',
      isAdmission: false,
    },
    { message: 'forbidden: User "u" cannot get path "/apis"', isAdmission: false },
    { message: 'Access denied by the proxy', isAdmission: false },
    { message: 'persistentvolumes "v" is forbidden: exceeded quota: q, requested: count=1', isAdmission: true },
    { message: 'admission webhook "w.example.com" denied the request: no', isAdmission: true },
  ]) {
    test(`${isAdmission ? 'admission refused' : 'a right is missing'}: ${message}`, () => {
      const error = errorFromStatus({ reason: 'Forbidden', code: 403, message }, create);
      assert.ok(error instanceof ForbiddenError);
      assert.equal(error.isAdmission, isAdmission);
    });
  }

  for (const [code, refused] of [
    [400, true],
    [404, true],
    [422, true],
    [401, false],
    [403, false],
    [408, false],
    [409, false],
    [429, false],
    [500, false],
  ] as const) {
    test(`an answer ${code} ${refused ? 'is' : 'is not'} a refusal for good`, () => {
      assert.equal(isRefusal(errorFromAnswer(code, '', create)), refused);
    });
  }

  test('no answer is no refusal', () => {
    assert.equal(isRefusal(new TransportError('x', { code: 'ECONNRESET' })), false);
  });

  test('a resource that is not served differs from an object that is not there', () => {
    const status = (details?: object): string =>
      JSON.stringify({ kind: 'Status', apiVersion: 'v1', reason: 'NotFound', code: 404, details });
    assert.equal(isUnservedResource(errorFromAnswer(404, '404 page not found\n', update)), true);
    assert.equal(isUnservedResource(errorFromAnswer(404, status({}), update)), true);
    assert.equal(isUnservedResource(errorFromAnswer(404, status({ name: 'fast' }), update)), false);
    assert.equal(isUnservedResource(errorFromAnswer(500, '', update)), false);
  });

  test('causes are found by type', () => {
    const details = { causes: [{ reason: 'FieldValueInvalid' }, { reason: 'NamespaceTerminating' }] };
    const error = errorFromStatus({ reason: 'Forbidden', code: 403, details }, create);
    assert.deepEqual([error.hasCause('NamespaceTerminating'), error.hasCause('Other')], [true, false]);
    assert.equal(errorFromStatus({ reason: 'Forbidden' }, create).hasCause('Other'), false);
  });

  test('a version that is compacted, or ahead of the server by its cause or the words of older servers, is unavailable', () => {
    const timeout = (extra: object): ApiError => errorFromStatus({ reason: 'Timeout', code: 504, ...extra }, update);
    assert.equal(isVersionUnavailable(timeout({ details: { causes: [{ reason: 'ResourceVersionTooLarge' }] } })), true);
    assert.equal(isVersionUnavailable(timeout({ message: 'Too large resource version: 9, current: 5' })), true);
    assert.equal(isVersionUnavailable(timeout({ message: 'etcd' })), false);
    assert.equal(isVersionUnavailable(errorFromStatus({ reason: 'Expired', code: 410 }, update)), true);
    assert.equal(isVersionUnavailable(new Error('Too large resource version')), false);
  });

  test('only a refused connection says that nothing was sent', () => {
    assert.equal(isConnectionRefused(new TransportError('x', { code: 'ECONNREFUSED' })), true);
    assert.equal(isConnectionRefused(new TransportError('x', { code: 'ECONNRESET' })), false);
    assert.equal(isConnectionRefused(new Error('ECONNREFUSED')), false);
  });
});
