import assert from 'node:assert/strict';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import ts from 'typescript';

const root = path.join(import.meta.dirname, '../..');
const entries = ['src/index.ts', 'src/kube.ts', 'src/testing/kit.ts'].map((file) => path.join(root, file));
const [entry = ''] = entries;

describe('the public surface', () => {
  let program: ts.Program;
  before(() => {
    const config = ts.readConfigFile(path.join(root, 'tsconfig.json'), (file) => ts.sys.readFile(file))
      .config as object;
    const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: entries }, ts.sys, root);
    program = ts.createProgram(entries, options);
  });

  const exportsOf = (file: string): ts.Symbol[] => {
    const checker = program.getTypeChecker();
    return checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)!)!);
  };

  test('says of each export what it is for', () => {
    const checker = program.getTypeChecker();
    const exported = entries.flatMap(exportsOf);
    assert.ok(exported.length > 50);
    const undocumented = exported.filter((symbol) => {
      const meant = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      return meant.getDocumentationComment(checker).length === 0;
    });
    assert.deepEqual(
      undocumented.map(({ name }) => name),
      [],
    );
  });

  test('has each name in one entry alone', () => {
    const names = entries.flatMap((file) => exportsOf(file).map(({ name }) => name));
    assert.equal(new Set(names).size, names.length);
  });

  test('has what a provisioner needs in its main entry, and queues, caches and elections beside it', () => {
    const [main = [], parts = []] = entries.map((file) => exportsOf(file).map(({ name }) => name));
    for (const name of ['runProvisioner', 'pvFor', 'ProvisionError', 'KubeClient'])
      assert.ok(main.includes(name), name);
    for (const name of ['WorkQueue', 'Informer', 'LeaderElector', 'EventRecorder'])
      assert.ok(parts.includes(name), name);
  });

  test('stands on the floors without CSI and without flags alone', () => {
    const folders = ts
      .createProgram([entry], program.getCompilerOptions())
      .getSourceFiles()
      .map(({ fileName }) => path.relative(path.join(root, 'src'), fileName))
      .filter((file) => !file.startsWith('..') && file.includes('/'))
      .map((file) => file.split('/')[0]);
    assert.deepEqual([...new Set(folders)].sort(), ['base', 'diagnostics', 'explain', 'kube', 'provision', 'run']);
  });
});
