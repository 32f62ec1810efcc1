import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  ApiError,
  ForbiddenError,
  isConnectionRefused,
  isNotCarriedOut,
  isRefusal,
  isUnservedResource,
  isVersionUnavailable,
  type RequestInfo,
  TransportError,
} from '../../../../src/kube/client/api-error.ts';
import { errorFromResponse, errorFromStatus } from '../../../../src/kube/client/error-from-status.ts';
import { create, resource, update } from '../class-requests.ts';

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

  for (const { what, code, message = 'no', certain } of [
    { what: 'an invalid object', code: 422, certain: true },
    { what: 'a missing right', code: 403, certain: true },
    { what: 'an overloaded server', code: 429, certain: true },
    { what: 'a conflict', code: 409, certain: false },
    { what: 'a timeout', code: 504, certain: false },
    { what: 'an internal error', code: 500, certain: false },
    {
      what: 'a webhook with code 409',
      code: 409,
      message: 'admission webhook "w.x" denied the request: no',
      certain: true,
    },
    {
      what: 'a webhook with code 500',
      code: 500,
      message: 'admission webhook "w.x" denied the request: no',
      certain: true,
    },
    {
      what: 'a webhook that does not answer',
      code: 500,
      message: 'Internal error occurred: failed calling webhook "w.x": timeout',
      certain: true,
    },
  ]) {
    test(`after ${what} a write is ${certain ? 'certainly not' : 'perhaps'} carried out`, () => {
      const body = JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, message });
      assert.equal(isNotCarriedOut(errorFromResponse(code, body, create)), certain);
    });
  }

  test('nothing is certain about a write after the word of a proxy', () => {
    assert.equal(isNotCarriedOut(errorFromResponse(403, 'Access denied by the proxy', create)), false);
  });

  test('a write that was not sent is certainly not carried out, one without an answer perhaps', () => {
    assert.equal(isNotCarriedOut(new TransportError('x', { code: 'ECONNREFUSED', sent: false })), true);
    assert.equal(isNotCarriedOut(new TransportError('x', { code: 'ECONNRESET' })), false);
    assert.equal(isNotCarriedOut(new Error('x')), false);
  });

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
      assert.equal(isRefusal(errorFromResponse(code, '', create)), refused);
    });
  }

  test('no answer is no refusal', () => {
    assert.equal(isRefusal(new TransportError('x', { code: 'ECONNRESET' })), false);
  });

  test('a resource that is not served differs from an object that is not there', () => {
    const status = (details?: object): string =>
      JSON.stringify({ kind: 'Status', apiVersion: 'v1', reason: 'NotFound', code: 404, details });
    assert.equal(isUnservedResource(errorFromResponse(404, '404 page not found\n', update)), true);
    assert.equal(isUnservedResource(errorFromResponse(404, status({}), update)), true);
    assert.equal(isUnservedResource(errorFromResponse(404, status({ name: 'fast' }), update)), false);
    assert.equal(isUnservedResource(errorFromResponse(500, '', update)), false);
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
