/** The drivers that `npm run try-driver` knows: how they are started, and what their classes need. */

export interface DriverProfile {
  name: string;
  about: string;
  /** `given`: the command of `--driver`; else it is there, or compiled when it is first used. */
  program: 'given' | 'mock' | 'sandbox';
  /** What follows the command. */
  args: (place: DriverPlace) => string[];
  /** Flags of the sidecar in the driver's own manifests. */
  sidecarFlags: readonly string[];
  /** Every class has these. */
  parameters: Record<string, string>;
  /** A second class has these, too. */
  furtherParameters: Record<string, string>;
  mountOptions?: readonly string[];
  /** The classes name a Secret with these values. */
  secret?: Record<string, string>;
  /** Type of file systems whose mounts become bind mounts of a local folder, so that no server is needed; needs root. */
  fakeMounts?: string;
  /** More than the driver has. */
  tooLarge: string;
}

/** Where a driver runs. */
export interface DriverPlace {
  /** Path of its socket. */
  socket: string;
  /** Empty, for its state. */
  folder: string;
  driverName: string;
}

const withTopology = ['--feature-gates=Topology=true'];
const withMetadata = ['--feature-gates=VolumeAttributesClass=false', '--extra-create-metadata=true'];

/** Of the drivers that mount their shares themselves. */
function mountingArgs({ socket, folder, driverName }: DriverPlace): string[] {
  return [
    `--endpoint=unix://${socket}`,
    `--working-mount-dir=${folder}/mounts`,
    `--drivername=${driverName}`,
    '--nodeid=node-1',
    '-v=5',
  ];
}

export const drivers: readonly DriverProfile[] = [
  {
    name: 'sandbox',
    about: "the sandbox's own hostpath driver",
    program: 'sandbox',
    args: ({ socket, folder, driverName }) => [
      `--csi-address=unix://${socket}`,
      `--state-dir=${folder}/state`,
      `--driver-name=${driverName}`,
      '--topology=zone=a',
    ],
    sidecarFlags: withTopology,
    parameters: {},
    furtherParameters: { 'csi.storage.k8s.io/fstype': 'xfs', tier: 'fast' },
    mountOptions: ['noatime'],
    tooLarge: '2Pi',
  },
  {
    name: 'mock',
    about: "the mock driver of Kubernetes' own end-to-end tests, compiled from k8s.io/kubernetes",
    program: 'mock',
    args: ({ socket, driverName }) => [socket, driverName],
    sidecarFlags: withTopology,
    parameters: {},
    furtherParameters: { 'csi.storage.k8s.io/fstype': 'xfs', tier: 'fast' },
    mountOptions: ['noatime'],
    tooLarge: '2Ei',
  },
  {
    name: 'hostpath',
    about: 'kubernetes-csi/csi-driver-host-path',
    program: 'given',
    args: ({ socket, folder, driverName }) => [
      `--endpoint=unix://${socket}`,
      `--statedir=${folder}/state`,
      `--drivername=${driverName}`,
      '--nodeid=node-1',
      '--capacity=fast=1Ti',
      '-v=5',
    ],
    sidecarFlags: withTopology,
    parameters: { kind: 'fast' },
    furtherParameters: { 'csi.storage.k8s.io/fstype': 'xfs' },
    mountOptions: ['noatime'],
    tooLarge: '2Ti',
  },
  {
    name: 'nfs',
    about: 'kubernetes-csi/csi-driver-nfs, its mounts as bind mounts',
    program: 'given',
    args: mountingArgs,
    sidecarFlags: [...withMetadata, '--retry-interval-max=30m'],
    parameters: { server: '127.0.0.1', share: '/share' },
    furtherParameters: {
      subDir: '${pvc.metadata.namespace}/${pvc.metadata.name}',
      onDelete: 'archive',
      mountPermissions: '0777',
    },
    mountOptions: ['nfsvers=4.1'],
    fakeMounts: 'nfs',
    tooLarge: '8Ei',
  },
  {
    name: 'smb',
    about: 'kubernetes-csi/csi-driver-smb, its mounts as bind mounts',
    program: 'given',
    args: mountingArgs,
    sidecarFlags: [...withMetadata, '--retry-interval-max=30m'],
    parameters: { source: '//127.0.0.1/share' },
    furtherParameters: { subDir: '${pvc.metadata.namespace}/${pvc.metadata.name}', onDelete: 'archive' },
    mountOptions: ['vers=3.0'],
    secret: { username: 'somebody', password: 'correct-horse' },
    fakeMounts: 'cifs',
    tooLarge: '8Ei',
  },
];

/** The profile of a name. */
export function driverProfile(name: string): DriverProfile | undefined {
  return drivers.find((driver) => driver.name === name);
}
