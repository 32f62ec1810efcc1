import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findSubcommand, subcommandHelp } from '../../../src/cli/subcommands.ts';

describe('findSubcommand', () => {
  test('finds a subcommand as the first argument, with the arguments behind it', () => {
    const found = findSubcommand('/usr/bin/csi-provisioner', ['why', 'ns/claim', '--watch']);
    assert.equal(found?.program, 'csi-provisioner why');
    assert.deepEqual(found.args, ['ns/claim', '--watch']);
  });

  test('finds it by the name of a link, with all arguments', () => {
    const found = findSubcommand('/usr/local/bin/kubectl-why_pvc', ['ns/claim']);
    assert.equal(found?.program, 'kubectl why-pvc');
    assert.deepEqual(found.args, ['ns/claim']);
  });

  for (const { name, args } of [
    { name: 'no arguments', args: [] },
    { name: 'flags of the sidecar', args: ['--csi-address=/run/csi/socket'] },
    { name: 'the word behind a flag', args: ['--v=5', 'why'] },
    { name: 'the name of a property that every object has', args: ['toString'] },
    { name: 'another word', args: ['whyever'] },
  ]) {
    test(`leaves ${name} to the sidecar`, () => {
      assert.equal(findSubcommand('/csi-provisioner', args), undefined);
    });
  }

  test('the help has each subcommand and fits 100 columns', () => {
    assert.match(subcommandHelp(), /^ {2}why {2,}\S/m);
    for (const line of subcommandHelp().split('\n')) assert.ok(line.length <= 100, line);
  });
});
