import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { runTool } from '../image/run-tool.ts';

const root = path.join(import.meta.dirname, '../..');
/** Below the repository, so that the packages that the declarations name are found. */
const declarations = path.join(root, '.cache/api-declarations');

/** The reports, and the entries of the package that they are about. */
const entries = {
  'csi-provisioner.api.md': 'index.d.ts',
  'kube.api.md': 'kube.d.ts',
  'testing.api.md': 'testing/kit.d.ts',
} as const;

/** Compiles the declarations and writes a report of each entry into a folder. @returns the names of the reports. */
export async function writeReports(folder: string): Promise<string[]> {
  await rm(declarations, { recursive: true, force: true });
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  const project = path.join(root, 'tsconfig.build.json');
  await runTool(process.execPath, [tsc, '--project', project, '--emitDeclarationOnly', '--outDir', declarations]);
  await mkdir(folder, { recursive: true });
  for (const [report, entry] of Object.entries(entries)) writeReport(folder, report, path.join(declarations, entry));
  return Object.keys(entries);
}

function writeReport(reportFolder: string, reportFileName: string, entry: string): void {
  const { succeeded } = Extractor.invoke(
    ExtractorConfig.prepare({
      configObject: {
        projectFolder: declarations,
        mainEntryPointFilePath: entry,
        newlineKind: 'lf',
        compiler: { overrideTsconfig: { compilerOptions, files: [entry] } },
        apiReport: { enabled: true, reportFileName, reportFolder, reportTempFolder: path.join(declarations, 'temp') },
        docModel: { enabled: false },
        dtsRollup: { enabled: false },
        tsdocMetadata: { enabled: false },
        messages: { extractorMessageReporting: { default: { logLevel: ExtractorLogLevel.None } } },
      },
      configObjectFullPath: undefined,
      packageJsonFullPath: path.join(root, 'package.json'),
    }),
    { localBuild: true, messageCallback: (message) => (message.handled = true) },
  );
  if (!succeeded) throw new Error(`API Extractor could not report ${path.relative(declarations, entry)}`);
}

const compilerOptions = {
  target: 'es2024',
  lib: ['es2024', 'esnext.disposable'],
  module: 'nodenext',
  strict: true,
  exactOptionalPropertyTypes: true,
  allowImportingTsExtensions: true,
  noEmit: true,
  skipLibCheck: true,
  types: ['node'],
};
