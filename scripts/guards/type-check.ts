import { readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';

/** @returns whether the compiler accepts another text of a source file, as far as that file itself is concerned. */
export function typeCheck(root: string): (file: string, text: string) => boolean {
  const config = ts.readConfigFile(path.join(root, 'tsconfig.json'), (name) => ts.sys.readFile(name));
  const { options, fileNames } = ts.parseJsonConfigFileContent(config.config, ts.sys, root);
  const changed = new Map<string, { text: string; version: number }>();
  const service = ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => fileNames.filter((name) => name.startsWith(path.join(root, 'src/'))),
    getScriptVersion: (name) => String(changed.get(name)?.version ?? 0),
    getScriptSnapshot: (name) => {
      if (!ts.sys.fileExists(name)) return undefined;
      return ts.ScriptSnapshot.fromString(changed.get(name)?.text ?? readFileSync(name, 'utf8'));
    },
    getCurrentDirectory: () => root,
    getDefaultLibFileName: (each) => ts.getDefaultLibFilePath(each),
    fileExists: (name) => ts.sys.fileExists(name),
    readFile: (name) => ts.sys.readFile(name),
    directoryExists: (name) => ts.sys.directoryExists(name),
  });
  let version = 0;
  return (file, text) => {
    const name = path.join(root, file);
    changed.set(name, { text, version: ++version });
    const found = service.getSemanticDiagnostics(name);
    changed.set(name, { text: readFileSync(name, 'utf8'), version: ++version });
    return !found.some(({ category }) => category === ts.DiagnosticCategory.Error);
  };
}
