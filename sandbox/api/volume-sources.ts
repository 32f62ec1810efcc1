import { posix } from 'node:path';
import { csiDriverName } from './storage-api-rules.ts';
import { all, between, type Check, each, type FieldError, filled, ifFilled, ifSet, invalid, isLongerThan, named, notSupported, oneOf, required, syntax } from './field-error.ts';
import { arrayAt, isObject, type JsonObject, objectAt, stringAt } from './json.ts';
import { labelNameProblem, subdomainProblem } from './names.ts';

/** Rules of a volume source of a PersistentVolume. */
interface VolumeSource {
  readonly check: Check;
  /** Its name in complaints about its fields, if it is not its own. */
  readonly shownAs?: string;
  /** Values of fields that are absent or empty. */
  readonly defaults?: JsonObject;
  /** Whether mounting takes options. */
  readonly mountOptions?: boolean;
}

const secretName = each({ name: filled });
const secret = each({ name: filled, namespace: filled });
const csiSecret = ifSet(each({ name: named(subdomainProblem), namespace: named(labelNameProblem) }));
const partition = between(0, 255);
const noBacksteps = syntax((path) => (path.split('/').includes('..') ? "must not contain '..'" : ''));
const absolutePath = syntax((path) => (posix.isAbsolute(path) ? '' : 'must be an absolute path'));

const initiatorForms: Readonly<Record<string, RegExp>> = {
  iqn: /iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\t\n\f\r ]+)$/,
  eui: /^eui.[A-Za-z0-9]{16}$/,
  naa: /^naa.[A-Za-z0-9]{32}$/,
};
const initiator = syntax((name) =>
  initiatorForms[name.slice(0, 3)]?.test(name) === true ? '' : 'must be valid format',
);

/** The volume sources by name. A volume has one; of several, the first of this order is the one that is checked. */
export const volumeSourceRules: Readonly<Record<string, VolumeSource>> = {
  hostPath: {
    check: (source, path) =>
      stringAt(source, 'path') === ''
        ? [required(`${path}.path`)]
        : each({
            path: noBacksteps,
            type: oneOf(
              '',
              'BlockDevice',
              'CharDevice',
              'Directory',
              'DirectoryOrCreate',
              'File',
              'FileOrCreate',
              'Socket',
            ),
          })(source, path),
  },
  gcePersistentDisk: { check: each({ pdName: filled, partition }), shownAs: 'persistentDisk', mountOptions: true },
  awsElasticBlockStore: { check: each({ volumeID: filled, partition }), mountOptions: true },
  glusterfs: {
    check: each({ endpoints: filled, path: filled, endpointsNamespace: ifSet(syntax(labelNameProblem)) }),
    mountOptions: true,
  },
  flocker: { check: flockerErrors },
  nfs: { check: each({ server: filled, path: all(filled, absolutePath) }), mountOptions: true },
  rbd: {
    check: each({ monitors: filled, image: filled }),
    defaults: { pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' },
    mountOptions: true,
  },
  quobyte: { check: all(each({ volume: filled }), quobyteErrors), mountOptions: true },
  cephfs: { check: each({ monitors: filled }), mountOptions: true },
  iscsi: {
    check: all(
      each({
        targetPortal: filled,
        iqn: all(filled, ifFilled(initiator)),
        lun: between(0, 255),
        secretRef: ifSet(secretName),
      }),
      iscsiErrors,
    ),
    defaults: { iscsiInterface: 'default' },
    mountOptions: true,
  },
  cinder: { check: each({ volumeID: filled, secretRef: ifSet(secret) }), mountOptions: true },
  fc: { check: fibreChannelErrors },
  flexVolume: { check: all(each({ driver: filled }), flexOptionErrors) },
  azureFile: {
    check: each({ secretName: filled, shareName: filled, secretNamespace: ifSet(filled) }),
    mountOptions: true,
  },
  vsphereVolume: { check: each({ volumePath: filled }), mountOptions: true },
  photonPersistentDisk: { check: each({ pdID: filled }), mountOptions: true },
  portworxVolume: { check: each({ volumeID: filled }) },
  azureDisk: {
    check: all(
      each({
        diskName: filled,
        diskURI: filled,
        cachingMode: oneOf('None', 'ReadOnly', 'ReadWrite'),
        kind: oneOf('Shared', 'Dedicated', 'Managed'),
      }),
      azureDiskErrors,
    ),
    defaults: { cachingMode: 'ReadWrite', fsType: 'ext4', readOnly: false, kind: 'Shared' },
    mountOptions: true,
  },
  scaleIO: {
    check: each({ gateway: filled, system: filled, volumeName: filled }),
    defaults: { storageMode: 'ThinProvisioned', fsType: 'xfs' },
  },
  local: {
    check: (source, path) =>
      stringAt(source, 'path') === '' ? [required(`${path}.path`)] : each({ path: noBacksteps })(source, path),
  },
  storageos: {
    check: each({
      volumeName: named(labelNameProblem),
      volumeNamespace: ifFilled(syntax(labelNameProblem)),
      secretRef: ifSet(secret),
    }),
  },
  csi: {
    check: each({
      driver: csiDriverName,
      volumeHandle: filled,
      controllerPublishSecretRef: csiSecret,
      controllerExpandSecretRef: csiSecret,
      nodePublishSecretRef: csiSecret,
      nodeExpandSecretRef: csiSecret,
    }),
  },
};

/** Fills in the defaults of the sources that are there. */
export function completeSources(spec: JsonObject): void {
  if (isObject(spec['hostPath'])) spec['hostPath']['type'] ??= '';
  for (const [name, { defaults = {} }] of Object.entries(volumeSourceRules)) {
    const source = spec[name];
    if (!isObject(source)) continue;
    for (const [field, value] of Object.entries(defaults)) if (!isSet(source[field], name)) source[field] = value;
  }
}

/** In azureDisk an empty text is a value; elsewhere it is none. */
function isSet(value: unknown, source: string): boolean {
  return value !== undefined && (value !== '' || source === 'azureDisk');
}

function flockerErrors(source: unknown, path: string): FieldError[] {
  const [name, uuid] = [stringAt(source, 'datasetName'), stringAt(source, 'datasetUUID')];
  return [
    ...(name === '' && uuid === '' ? [required(path, 'one of datasetName and datasetUUID')] : []),
    ...(name !== '' && uuid !== '' ? [invalid(path, 'resource', 'may not have both datasetName and datasetUUID')] : []),
    ...(name.includes('/') ? [invalid(`${path}.datasetName`, name, "must not contain '/'")] : []),
  ];
}

function quobyteErrors(source: unknown, path: string): FieldError[] {
  const registry = stringAt(source, 'registry');
  if (registry === '') return [required(`${path}.registry`, 'must be host:port pairs')];
  if (isLongerThan(stringAt(source, 'tenant'), 64)) return [required(`${path}.tenant`, 'must be a UUID')];
  if (registry.split(',').every(isHostAndPort)) return [];
  return [invalid(`${path}.registry`, registry, 'must be host:port pairs')];
}

/** As Go's `net.SplitHostPort` sees it: either part may be empty, a host with colons is in brackets. */
function isHostAndPort(text: string): boolean {
  return /^(\[[^[\]]*\]|[^:[\]]*):[^:[\]]*$/.test(text);
}

function iscsiErrors(source: unknown, path: string): FieldError[] {
  const fields = objectAt({ source }, 'source');
  const login = fields['chapAuthDiscovery'] === true || fields['chapAuthSession'] === true;
  return [
    ...(login && fields['secretRef'] === undefined ? [required(`${path}.secretRef`)] : []),
    ...ifSet(initiator)(fields['initiatorName'], `${path}.initiatorname`),
  ];
}

/** With an initiator, the name of the volume and the portal make up the name of an interface. */
export function initiatorErrors(source: unknown, volumeName: string): FieldError[] {
  const portal = stringAt(source, 'targetPortal');
  if (objectAt({ source }, 'source')['initiatorName'] === undefined) return [];
  if (!isLongerThan(`${volumeName}:${portal}`, 64)) return [];
  return [invalid('spec.iscsi.targetportal', portal, 'is, with the name of the volume, longer than 64 characters')];
}

function fibreChannelErrors(source: unknown, path: string): FieldError[] {
  const [names, ids] = [arrayAt(source, 'targetWWNs'), arrayAt(source, 'wwids')];
  if (names.length === 0) return ids.length === 0 ? [required(`${path}.targetWWNs`, 'or wwids')] : [];
  return [
    ...(ids.length === 0 ? [] : [invalid(`${path}.targetWWNs`, names, 'may not be specified with wwids')]),
    ...(objectAt({ source }, 'source')['lun'] === undefined
      ? [required(`${path}.lun`, 'with targetWWNs')]
      : each({ lun: between(0, 255) })(source, path)),
  ];
}

function flexOptionErrors(source: unknown, path: string): FieldError[] {
  return Object.keys(objectAt(source, 'options'))
    .filter((key) => /\.(kubernetes|k8s)\.io$/.test(`.${(key.split('/')[0] ?? '').toLowerCase()}`))
    .map((key) => invalid(`${path}.options[${key}]`, key, 'kubernetes.io and k8s.io namespaces are reserved'));
}

function azureDiskErrors(source: unknown, path: string): FieldError[] {
  const kind = objectAt({ source }, 'source')['kind'];
  if (kind === undefined) return [];
  const uri = stringAt(source, 'diskURI');
  const start = kind === 'Managed' ? '/subscriptions/' : 'https://';
  return uri.startsWith(start) ? [] : [notSupported(`${path}.diskURI`, uri, [`${start}...`])];
}
