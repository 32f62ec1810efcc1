import assert from 'node:assert/strict';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import ts from 'typescript';

const root = path.join(import.meta.dirname, '../..');
const entry = path.join(root, 'src/index.ts');

describe('the public surface', () => {
  let program: ts.Program;
  before(() => {
    const config = ts.readConfigFile(path.join(root, 'tsconfig.json'), (file) => ts.sys.readFile(file))
      .config as object;
    const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [entry] }, ts.sys, root);
    program = ts.createProgram([entry], options);
  });

  test('says of each export what it is for', () => {
    const checker = program.getTypeChecker();
    const module = checker.getSymbolAtLocation(program.getSourceFile(entry)!);
    const exported = checker.getExportsOfModule(module!);
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

  test('stands on the floors without CSI and without flags alone', () => {
    const folders = program
      .getSourceFiles()
      .map(({ fileName }) => path.relative(path.join(root, 'src'), fileName))
      .filter((file) => !file.startsWith('..') && file.includes('/'))
      .map((file) => file.split('/')[0]);
    assert.deepEqual([...new Set(folders)].sort(), ['base', 'diagnostics', 'explain', 'kube', 'provision', 'run']);
  });
});
