import assert from 'node:assert/strict';
import { test } from 'node:test';
import { templateAnnotations } from '../../../../src/csi/secrets/secret-reference.ts';

test('finds the annotations that templates of a class refer to', () => {
  const parameters = {
    type: 'ssd',
    'csi.storage.k8s.io/provisioner-secret-name': "${pvc.annotations['team']}-${pvc.annotations['example.com/key']}",
    'csi.storage.k8s.io/provisioner-secret-namespace': '${pvc.namespace}',
  };
  assert.deepEqual(templateAnnotations(parameters), ['team', 'example.com/key']);
});
