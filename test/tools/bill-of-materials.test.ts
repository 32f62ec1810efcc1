/** The bills of materials against what the programs hold, which their source maps say. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { BillOfMaterials } from '../../scripts/sbom/bill-of-materials.ts';

const root = path.join(import.meta.dirname, '../..');
const exec = promisify(execFile);
const script = (name: string): string => path.join(root, 'scripts', name);

/** Images of one program, with the files in them. */
const images: Readonly<Record<string, readonly string[]>> = {
  'csi-provisioner': ['csi-provisioner.js', 'csi-provisioner.bundle.cjs', 'csi-provisioner-traces.mjs'],
  'nfs-provisioner': ['nfs-provisioner.js'],
  'nfs-subdir-external-provisioner': ['nfs-subdir-external-provisioner.js'],
};

/** As dpkg notes it: one package is installed, of another the settings remain. */
const dpkgStatus = `Package: nfs-ganesha
Status: install ok installed
Architecture: amd64
Version: 4.3-2

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1:2.0
`;

const packagesIn = (bill: BillOfMaterials, kind: string): string[] =>
  bill.components
    .filter(({ purl }) => purl.startsWith(`pkg:${kind}/`))
    .map(({ name, version }) => `${name} ${version}`);

/** Of a package, whose own source map may name a file beside it: in its scope, which has one package then. */
async function manifestOf(folder: string): Promise<string> {
  const manifest = path.join(root, folder, 'package.json');
  if (existsSync(manifest)) return manifest;
  const [only, ...others] = await readdir(path.join(root, path.dirname(folder)));
  assert.ok(only !== undefined && others.length === 0, folder);
  return path.join(root, path.dirname(folder), only, 'package.json');
}

describe('the bill of materials', () => {
  let folder: string;
  let system: string;
  const bill = async (image: string): Promise<BillOfMaterials> =>
    JSON.parse(await readFile(path.join(folder, `${image}.cdx.json`), 'utf8')) as BillOfMaterials;
  const writeBill = async (image: string): Promise<void> => {
    const env = { ...process.env, VERSION: 'v1.2.3', SOURCE_DATE_EPOCH: '1700000000' };
    await exec(process.execPath, [script('sbom.ts'), image, '--out', folder, '--root', system], { env });
  };

  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'sbom-'));
    system = path.join(folder, 'system');
    await mkdir(path.join(system, 'var/lib/dpkg'), { recursive: true });
    await writeFile(path.join(system, 'var/lib/dpkg/status'), dpkgStatus);
    await exec(process.execPath, [script('build.ts'), '--maps', '--out', folder]);
    for (const image of Object.keys(images)) await writeBill(image);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** Name and version of every package of which the files' source maps name a source. */
  async function held(files: readonly string[]): Promise<string[]> {
    const found = new Set<string>();
    for (const file of files) {
      const map = JSON.parse(await readFile(path.join(folder, `${file}.map`), 'utf8')) as { sources: string[] };
      for (const source of map.sources) {
        const [, inside] = /^(?:\.\.\/)*(.*node_modules\/(?:@[^/]+\/)?[^/]+)/.exec(source) ?? [];
        if (inside === undefined) continue;
        const manifest = JSON.parse(await readFile(await manifestOf(inside), 'utf8')) as {
          name: string;
          version: string;
        };
        found.add(`${manifest.name} ${manifest.version}`);
      }
    }
    return [...found].toSorted();
  }

  for (const [image, files] of Object.entries(images)) {
    test(`of ${image} lists the packages that its files hold, and no other`, async () => {
      const packages = await held(files);
      assert.ok(packages.some((name) => name.startsWith('undici ')));
      assert.deepEqual(packagesIn(await bill(image), 'npm').toSorted(), packages);
    });

    test(`of ${image} has the Node.js that made it, the Debian packages that are installed, version and time`, async () => {
      const made = await bill(image);
      assert.deepEqual(packagesIn(made, 'generic'), [`node ${process.versions.node}`]);
      assert.deepEqual(packagesIn(made, 'deb'), ['nfs-ganesha 4.3-2']);
      assert.equal(made.metadata.component.version, 'v1.2.3');
      assert.equal(made.metadata.timestamp, '2023-11-14T22:13:20.000Z');
    });
  }

  test('differs between programs that hold different packages', async () => {
    const [sidecar, nfs] = [await bill('csi-provisioner'), await bill('nfs-provisioner')];
    assert.ok(packagesIn(sidecar, 'npm').some((name) => name.startsWith('protobufjs ')));
    assert.ok(!packagesIn(nfs, 'npm').some((name) => name.startsWith('protobufjs ')));
    assert.ok(packagesIn(nfs, 'npm').some((name) => name.startsWith('dbus-native ')));
  });

  test('names each component once, with the checksum of its package', async () => {
    const { components } = await bill('csi-provisioner');
    assert.equal(new Set(components.map((each) => each['bom-ref'])).size, components.length);
    for (const { purl, hashes = [] } of components.filter((each) => each.purl.startsWith('pkg:npm/'))) {
      assert.match(hashes[0]?.content ?? '', /^[0-9a-f]{128}$/, purl);
    }
  });

  test('has the same bytes when it is made again', async () => {
    const file = path.join(folder, 'csi-provisioner.cdx.json');
    const first = await readFile(file, 'utf8');
    await writeBill('csi-provisioner');
    assert.equal(await readFile(file, 'utf8'), first);
  });

  test('reads the files of a distroless image, which has one for each package', async () => {
    await rm(system, { recursive: true });
    await mkdir(path.join(system, 'var/lib/dpkg/status.d'), { recursive: true });
    const entry = 'Package: libc6\nVersion: 2.36-9\nArchitecture: amd64\nDescription: C\n library\n';
    await writeFile(path.join(system, 'var/lib/dpkg/status.d/libc6'), entry);
    await writeFile(path.join(system, 'var/lib/dpkg/status.d/libc6.md5sums'), 'abc  usr/lib/libc.so.6\n');
    await writeBill('nfs-subdir-external-provisioner');
    assert.deepEqual(packagesIn(await bill('nfs-subdir-external-provisioner'), 'deb'), ['libc6 2.36-9']);
  });

  test('is made for every image of one program', async () => {
    const listed = (await readdir(folder)).filter((name) => name.endsWith('.cdx.json')).toSorted();
    assert.deepEqual(
      listed,
      Object.keys(images)
        .map((name) => `${name}.cdx.json`)
        .toSorted(),
    );
  });
});
