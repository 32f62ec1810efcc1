/** The example provisioners pass the suite that their page recommends. */
import assert from 'node:assert/strict';
import { open, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe } from 'node:test';
import { testProvisioner, type VolumeData } from '../../src/testing/kit.ts';
import { type Example, exampleFolder, installExample } from '../support/example-process.ts';

let example: Example;
before(async () => {
  example = await installExample();
});
after(() => example[Symbol.asyncDispose]());

const inFile: VolumeData = {
  write: async ({ metadata, spec }) => {
    await using image = await open(spec.hostPath?.path ?? '', 'r+');
    await image.write(metadata.name);
  },
  check: async ({ metadata, spec }) => {
    const text = await readFile(spec.hostPath?.path ?? '', 'utf8');
    assert.ok(text.startsWith(metadata.name), 'the file has another content');
  },
};
const inFolder: VolumeData = {
  write: ({ metadata, spec }) => writeFile(path.join(spec.hostPath?.path ?? '', 'name'), metadata.name),
  check: async ({ metadata, spec }) => {
    assert.equal(await readFile(path.join(spec.hostPath?.path ?? '', 'name'), 'utf8'), metadata.name);
  },
};

for (const [file, options] of [
  ['images.ts', { data: inFile }],
  ['main.ts', { data: inFolder, recorded: false }],
  ['replicated.ts', { data: inFolder, recorded: false }],
] as const) {
  describe(file, () => {
    testProvisioner(
      ({ folder }) => ({
        command: [process.execPath, path.join(example.folder, file), folder],
        env: { METRICS_PORT: '0' },
      }),
      {
        provisionerName: 'hostpath.example.com',
        listStorage: ({ folder }) => readdir(folder),
        storageOf: ({ spec }) => path.basename(spec.hostPath?.path ?? ''),
        rbac: path.join(exampleFolder, 'rbac.yaml'),
        settleMs: 60_000,
        ...options,
      },
    );
  });
}
