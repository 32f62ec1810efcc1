/**
 * `npm run sbom -- IMAGE`: the bill of materials (CycloneDX) of an image, dist/IMAGE.cdx.json: the packages that its program holds, the
 * Node.js that runs this script, and the Debian packages of the system that it runs on. So the images are built: each by its own
 * Node.js, on its own base.
 *
 *   node scripts/sbom.ts csi-provisioner                  after node scripts/build.ts csi-provisioner
 *   node scripts/sbom.ts hostpath-driver --installed FOLDER   the packages are those of FOLDER/node_modules
 *   --root FOLDER     the system, by default /
 *   --out FOLDER      by default dist
 *
 * $VERSION is the version of the image, by default that of package.json. With $SOURCE_DATE_EPOCH it has that time, else none: two runs
 * write the same bytes.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { BundledPackage } from './bundled-packages.ts';
import { billOfMaterials } from './sbom/bill-of-materials.ts';
import { debianPackages } from './sbom/debian-packages.ts';

const root = path.join(import.meta.dirname, '..');
const { values, positionals } = parseArgs({
  options: {
    installed: { type: 'string' },
    out: { type: 'string', default: path.join(root, 'dist') },
    root: { type: 'string', default: '/' },
  },
  allowPositionals: true,
});
const [image = ''] = positionals;
if (!/^[a-z-]+$/.test(image)) throw new Error('name one image, such as csi-provisioner');
const manifest = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as { version: string };
const packages =
  values.installed === undefined
    ? (JSON.parse(await readFile(path.join(values.out, `${image}.packages.json`), 'utf8')) as BundledPackage[])
    : await installedPackages(values.installed);
const epoch = process.env['SOURCE_DATE_EPOCH'];
const bill = billOfMaterials({
  image,
  version: process.env['VERSION'] ?? `v${manifest.version}`,
  nodeVersion: process.versions.node,
  packages,
  debian: await debianPackages(values.root),
  ...(epoch !== undefined && epoch !== '' && { timeMs: Number(epoch) * 1000 }),
});
await mkdir(values.out, { recursive: true });
await writeFile(path.join(values.out, `${image}.cdx.json`), `${JSON.stringify(bill, null, 2)}\n`);
console.log(`${image}.cdx.json: ${bill.components.length} components`);

/** The packages below a folder's node_modules, as npm notes them there. @throws when npm did not install them. */
async function installedPackages(folder: string): Promise<BundledPackage[]> {
  const text = await readFile(path.join(folder, 'node_modules/.package-lock.json'), 'utf8');
  const { packages } = JSON.parse(text) as {
    packages: Record<string, { version: string; license?: string }>;
  };
  return Object.entries(packages).map(([key, { version, license }]) => ({
    name: key.replace(/^.*node_modules\//, ''),
    version,
    ...(license !== undefined && { license }),
  }));
}
