/**
 * `npm run build`: the programs as one minified file each, and the licences of what is in them. Dependencies are as they are
 * published, without what esbuild finds unused; the CSI descriptor is put in as JSON, so no proto file is read at start.
 *
 *   node scripts/build.ts                   all of them: dist/csi-provisioner.js, which loads
 *                                           dist/csi-provisioner.bundle.cjs with its source map, and to trace claims
 *                                           dist/csi-provisioner-traces.mjs; dist/csi-sandbox.js; and the provisioners
 *                                           of provisioners/ that are shipped; and the kubectl plugin
 *                                           dist/kubectl-csi.cjs
 *   node scripts/build.ts csi-provisioner   one alone, as its image has it
 *   node scripts/build.ts --out FOLDER      into another folder than dist
 *   node scripts/build.ts --test-programs   also hostpath-driver.js and sandbox.js, which only tests start
 *   node scripts/build.ts --maps            with a source map beside every file, which is not shipped
 *
 * For each program NAME there is NAME.packages.json, the packages that it holds: scripts/sbom.ts makes the bill of materials of an
 * image of it. All bytes depend on the sources and package-lock.json alone.
 */
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { build, type BuildOptions, type Plugin } from 'esbuild';
import { sidecarManifests } from '../sandbox/cluster/sidecar-manifests.ts';
import { messageForm } from '../sandbox/csi-services.ts';
import { csiDescriptor } from '../src/csi/csi-proto-source.ts';
import { calledCsiDescriptor } from './called-csi.ts';
import { bundledPackages, thirdPartyLicences } from './bundled-packages.ts';
import { callersInlined } from './inline-callers.ts';

const root = path.join(import.meta.dirname, '..');
const { values: flags, positionals: wanted } = parseArgs({
  options: {
    out: { type: 'string', default: path.join(root, 'dist') },
    'test-programs': { type: 'boolean', default: false },
    maps: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const dist = path.resolve(flags.out);

/** Replaces the module that parses the proto file by the parsed descriptor. */
const descriptorInlined: Plugin = {
  name: 'csi-descriptor',
  setup: (plugged) => {
    plugged.onLoad({ filter: /csi-proto-source\.ts$/ }, () => ({
      contents: `const descriptor = ${JSON.stringify(calledCsiDescriptor())};\nexport const csiDescriptor = () => descriptor;`,
      loader: 'js',
    }));
  },
};

/**
 * Node's own modules come by `require`: an `import` would read every property of them, and those of `node:http` that
 * stand for WebSocket and its events load Node's whole fetch implementation.
 */
const builtinsRequired: Plugin = {
  name: 'builtins-required',
  setup: (plugged) => {
    plugged.onResolve({ filter: /^node:/ }, ({ path: name, kind }) =>
      kind === 'import-statement' ? { path: name, namespace: 'builtin' } : undefined,
    );
    plugged.onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path: name }) => ({
      contents: `module.exports = require(${JSON.stringify(name)})`,
      loader: 'js',
    }));
  },
};

/**
 * A file as a statement, such as the check of the Node.js version. It can be the first one of the bundle because nothing is
 * imported there and no syntax is newer than `oldestParser`.
 *
 * @param source - the file, relative to the root.
 */
async function statementOf(source: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [path.join(root, source)],
    write: false,
    bundle: true,
    minify: true,
    format: 'iife',
    target: oldestParser,
  });
  return outputFiles[0]?.text.trim() ?? '';
}

/** The Node.js that still has to read the bundle, so as to say that it is too old. */
const oldestParser = 'node18';

/** The sandbox reads two files of the repository, which the bundle brings along. */
const sandboxFilesInlined: Plugin = {
  name: 'sandbox-files',
  setup: (plugged) => {
    plugged.onLoad({ filter: /sandbox\/csi-services\.ts$/ }, () => ({
      contents: `import { fromJSON } from '@grpc/proto-loader';
        const form = ${JSON.stringify({ ...messageForm, longs: undefined, enums: undefined })};
        export const messageForm = { ...form, longs: String, enums: String };
        let services;
        export const csiServices = () => (services ??= fromJSON(${JSON.stringify(csiDescriptor())}, messageForm));`,
      loader: 'js',
      resolveDir: root,
    }));
    plugged.onLoad({ filter: /sandbox\/cluster\/sidecar-manifests\.ts$/ }, () => ({
      contents: `export const sidecarManifests = () => ${JSON.stringify(sidecarManifests())};`,
      loader: 'js',
    }));
  },
};

const common = {
  bundle: true,
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none', // they are in the licence file; one letter beyond ASCII in the bundle doubles its memory
  minifyIdentifiers: false, // logs, stacks and profiles show names; `keepNames` would set them at each making of a closure
  platform: 'node',
  target: oldestParser,
  define: { esbuildDetection: 'true' }, // how undici's makers leave its experimental parser out
  metafile: true,
  logLevel: 'warning',
} as const satisfies BuildOptions;

// dependencies in CommonJS call `require`, which an ES module has to make itself
const requireMade = "const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);";

/**
 * The first lines of a file that is run as a command.
 *
 * @param check - the file that refuses an old Node.js, relative to the root.
 */
async function commandBanner(check: string, { isModule = true } = {}): Promise<{ js: string }> {
  const statements = await Promise.all(
    [check, 'src/report-crash.ts', 'src/ignore-debug-signal.ts', 'src/base/end-when-done.ts'].map(statementOf),
  );
  return { js: ['#!/usr/bin/env node', ...statements, ...(isModule ? [requireMade] : [])].join('\n') };
}

/** Bundles one file and prints what is in it. @returns the files that went into it. */
async function bundle(outfile: string, options: BuildOptions): Promise<string[]> {
  const result = await build({
    ...common,
    ...(flags.maps && { sourcemap: 'external' }),
    ...options,
    metafile: true,
    write: false,
    outfile: path.join(root, 'dist', outfile), // source maps name the sources from here, wherever they are written to
  });
  for (const { path: file, contents } of result.outputFiles) {
    await writeFile(path.join(dist, path.basename(file)), contents);
  }
  const bundled = Object.values(result.metafile.outputs)
    .flatMap(({ inputs }) => Object.entries(inputs))
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const byPackage = new Map<string, number>();
  for (const [input, { bytesInOutput }] of bundled) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1] ?? 'src';
    byPackage.set(name, (byPackage.get(name) ?? 0) + bytesInOutput);
  }
  if (options.banner?.['js']?.startsWith('#!') === true) await chmod(path.join(dist, outfile), 0o755);
  const bytes = result.outputFiles.find(({ path: file }) => path.basename(file) === outfile)?.contents.length ?? 0;
  console.log(`${path.relative(root, path.join(dist, outfile))}: ${(bytes / 1000).toFixed(0)} kB`);
  for (const [name, bytes] of [...byPackage].toSorted(([, a], [, b]) => b - a).slice(0, 12)) {
    console.log(`  ${name.padEnd(36)} ${(bytes / 1000).toFixed(0).padStart(6)} kB`);
  }
  return bundled.map(([input]) => input);
}

/** What the sidecar loads when it traces: a file beside it, which its image names as it is named here. */
const tracesFile = 'csi-provisioner-traces.mjs';

const tracesApart: Plugin = {
  name: 'traces-apart',
  setup: (plugged) => {
    plugged.onResolve({ filter: /\/otlp-traces\.ts$/ }, ({ kind }) =>
      kind === 'dynamic-import' ? { path: `./${tracesFile}`, external: true } : undefined,
    );
  },
};

async function buildTraces(): Promise<string[]> {
  return await bundle(tracesFile, {
    entryPoints: [path.join(root, 'src/cli/traces/otlp-traces.ts')],
    format: 'esm',
    banner: { js: requireMade },
    plugins: [callersInlined, builtinsRequired],
  });
}

async function buildSidecar(): Promise<string[]> {
  const loader = await bundle('csi-provisioner.js', {
    entryPoints: [path.join(root, 'src/bundle-main.ts')],
    format: 'esm',
    banner: await commandBanner('src/check-node.ts'),
    plugins: [builtinsRequired],
  });
  // CommonJS, since only scripts can have their compiled code kept in a file.
  const program = await bundle('csi-provisioner.bundle.cjs', {
    entryPoints: [path.join(root, 'src/cli/main.ts')],
    format: 'cjs',
    supported: { 'dynamic-import': false },
    sourcemap: true,
    sourcesContent: false,
    plugins: [tracesApart, descriptorInlined, callersInlined, builtinsRequired],
  });
  return [...loader, ...program, ...(await buildTraces())];
}

/**
 * One file that runs wherever it is copied, under whatever name: kubectl finds plugins by their names, and a file without extension
 * is CommonJS.
 */
async function buildPlugin(): Promise<string[]> {
  return await bundle('kubectl-csi.cjs', {
    entryPoints: [path.join(root, 'src/cli/plugin/plugin-main.ts')],
    format: 'cjs',
    banner: await commandBanner('src/check-node.ts', { isModule: false }),
    supported: { 'dynamic-import': false },
    plugins: [descriptorInlined, callersInlined, builtinsRequired],
  });
}

async function buildSandbox(name: string, source: string): Promise<string[]> {
  return await bundle(`${name}.js`, {
    entryPoints: [path.join(root, source)],
    format: 'esm',
    banner: await commandBanner('sandbox/check-node.js'),
    plugins: [sandboxFilesInlined, builtinsRequired],
  });
}

/** The programs on the library that are shipped, by the folder of provisioners/ that they are in. */
const provisioners: Readonly<Record<string, string>> = {
  'nfs-provisioner': 'nfs-server',
  'nfs-subdir-external-provisioner': 'nfs-subdir',
};

async function buildProvisioner(name: string, folder: string): Promise<string[]> {
  return await bundle(`${name}.js`, {
    entryPoints: [path.join(root, 'provisioners', folder, 'main.ts')],
    format: 'esm',
    banner: await commandBanner('src/check-node.ts'),
    plugins: [callersInlined, builtinsRequired],
  });
}

const programs: Readonly<Record<string, () => Promise<string[]>>> = {
  'csi-provisioner': buildSidecar,
  'csi-sandbox': () => buildSandbox('csi-sandbox', 'sandbox/cluster/main.ts'),
  'kubectl-csi': buildPlugin,
  ...Object.fromEntries(
    Object.entries(provisioners).map(([name, folder]) => [name, () => buildProvisioner(name, folder)]),
  ),
  ...(flags['test-programs'] && {
    'hostpath-driver': () => buildSandbox('hostpath-driver', 'sandbox/hostpath/main.ts'),
    sandbox: () => buildSandbox('sandbox', 'sandbox/main.ts'),
  }),
};

const unknown = wanted.filter((name) => !Object.hasOwn(programs, name));
if (unknown.length > 0)
  throw new Error(`no program ${unknown.join(', ')}: there are ${Object.keys(programs).join(', ')}`);
await mkdir(dist, { recursive: true });
const inputs = new Set<string>();
for (const [name, make] of Object.entries(programs)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const held = await make();
  for (const input of held) inputs.add(input);
  const packages = await bundledPackages(root, held);
  await writeFile(path.join(dist, `${name}.packages.json`), `${JSON.stringify(packages, null, 2)}\n`);
}
await writeFile(path.join(dist, 'THIRD-PARTY-LICENSES.txt'), await thirdPartyLicences(root, inputs));
