import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { programHelp } from '../support/control-plane/program-help.ts';

describe('what a control plane program says it knows', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'program-help-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** A program whose help is this text, indented as that of Kubernetes. */
  const program = async (name: string, help: string): Promise<void> => {
    await writeFile(join(folder, name), `#!/bin/sh\n[ "$1" = --help ] && cat <<'END'\n${help}\nEND\n`);
    await chmod(join(folder, name), 0o755);
  };

  test('are the controllers of its list, by their whole names', async () => {
    await program(
      'kube-controller-manager',
      `      --controllers strings   A list of controllers to enable.
                              All controllers: namespace-controller, persistentvolume-binder-controller
                              Disabled-by-default controllers: token-cleaner-controller (default [*])`,
    );
    const { knowsController } = await programHelp(folder, 'kube-controller-manager');
    assert.ok(knowsController('namespace-controller'));
    assert.ok(knowsController('persistentvolume-binder-controller'));
    assert.equal(knowsController('persistentvolume'), false);
    assert.equal(knowsController('volumeattributesclass-protection-controller'), false);
  });

  for (const prefix of ['', 'kube:']) {
    test(`are its feature gates, written as ${prefix}NAME`, async () => {
      await program(
        'kube-apiserver',
        `      --feature-gates   A set of key=value pairs. Options are:
                        ${prefix}AllAlpha=true|false (ALPHA - default=false)
                        ${prefix}VolumeAttributesClass=true|false (BETA - default=false)`,
      );
      const { knowsGate } = await programHelp(folder, 'kube-apiserver');
      assert.ok(knowsGate('VolumeAttributesClass'));
      assert.equal(knowsGate('AttributesClass'), false);
    });
  }
});
