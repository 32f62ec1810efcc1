import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  AlreadyExistsError,
  ApiError,
  ConflictError,
  ExpiredError,
  ForbiddenError,
  InvalidError,
  NotFoundError,
  TooManyRequestsError,
  UnauthorizedError,
} from '../../../../src/kube/client/api-error.ts';
import { errorFromResponse, errorFromStatus } from '../../../../src/kube/client/error-from-status.ts';
import { create, update } from '../class-requests.ts';

describe('errorFromResponse', () => {
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
      const error = errorFromResponse(code, ' upstream says no \n', update);
      assert.equal(error.constructor, ErrorClass);
      assert.deepEqual([error.code, error.reason, error.message], [code, reason, 'upstream says no']);
    });
  }

  test('a bare 409 to a POST means that the name is taken', () => {
    assert.ok(errorFromResponse(409, '', create) instanceof AlreadyExistsError);
  });

  test('keeps 2,048 characters of a text, and names the request where there is none', () => {
    assert.equal(errorFromResponse(500, 'x'.repeat(5000), update).message.length, 2048);
    assert.equal(errorFromResponse(500, '', update).message, 'the server responded with 500 to update storageclasses');
  });

  test('names the request before a page of a proxy', () => {
    const { message } = errorFromResponse(302, '\n<html>Please log in</html>', update);
    assert.equal(message, 'the server responded with 302 to update storageclasses: <html>Please log in</html>');
  });

  test('the reason of a Status decides, not the code', () => {
    const body = (reason: string): string =>
      JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code: 409, message: 'm' });
    assert.ok(errorFromResponse(409, body('AlreadyExists'), update) instanceof AlreadyExistsError);
    assert.ok(errorFromResponse(409, body('Conflict'), create) instanceof ConflictError);
    assert.equal(errorFromResponse(409, body('ServerTimeout'), create).constructor, ApiError);
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
    const error = errorFromResponse(404, '{"kind":"Other","apiVersion":"v1","reason":"Conflict"}', update);
    assert.ok(error instanceof NotFoundError);
    assert.match(error.message, /"Other"/);
    assert.ok(errorFromResponse(404, 'null', update) instanceof NotFoundError);
  });

  test('keeps the seconds the server asked for', () => {
    assert.equal(errorFromResponse(429, '', update, 7).retryAfterS, 7);
  });
});
