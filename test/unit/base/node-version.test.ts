import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import manifest from '../../../package.json' with { type: 'json' };
import { nodeVersionProblem } from '../../../src/base/node-version.ts';

describe('nodeVersionProblem', () => {
  const oldest = Number(/^>=(\d+)$/.exec(manifest.engines.node)?.[1]);

  test('takes what package.json names, and newer ones', () => {
    for (const version of [`${oldest}.0.0`, `${oldest}.21.0`, `${oldest + 1}.0.0-pre`, '100.0.0']) {
      assert.equal(nodeVersionProblem(version), undefined, version);
    }
  });

  for (const version of [`${oldest - 1}.99.9`, '8.17.0', '0.12.18']) {
    test(`refuses ${version} and names both versions`, () => {
      const line = `csi-provisioner needs Node.js ${oldest} or newer, and this is Node.js ${version}`;
      assert.equal(nodeVersionProblem(version), line);
    });
  }
});
