/** Directories that PersistentVolumes of others use, in each spelling and of each kind: no deletion, audit or retention takes them. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { sweepArchives } from '../../../provisioners/nfs-subdir/archives.ts';
import { SubdirAudit } from '../../../provisioners/nfs-subdir/audit.ts';
import { directoryKey } from '../../../provisioners/nfs-subdir/directory-use.ts';
import { PatientCalls } from '../../../provisioners/nfs-subdir/patient-calls.ts';
import type { PersistentVolume } from '../../../src/index.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { provisionerName, SubdirRig } from './rig.ts';

type Spec = PersistentVolume['spec'];

const volumesRef = { group: '', version: 'v1', plural: 'persistentvolumes' };
const signal = new AbortController().signal;
const nfs = (path: string, server = 'srv'): Spec => ({ nfs: { server, path } });
const csi = (volumeAttributes?: Record<string, string>, volumeHandle = 'any', driver = 'nfs.csi.k8s.io'): Spec => ({
  csi: { driver, volumeHandle, ...(volumeAttributes && { volumeAttributes }) },
});
const nodeAffinity = {
  required: {
    nodeSelectorTerms: [
      { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In' as const, values: ['n'] }] },
    ],
  },
};
const claimRef = { namespace: 'team', name: 'x' };
const ofClaim = { 'csi.storage.k8s.io/pvc/namespace': 'team', 'csi.storage.k8s.io/pvc/name': 'x' };

interface Kind {
  what: string;
  spec: Spec;
  status?: PersistentVolume['status'];
  annotations?: Record<string, string>;
}

/** All of them use `team/x`, or may. */
const users: Kind[] = [
  { what: 'an NFS volume', spec: nfs('/exp/team/x') },
  { what: 'an NFS volume with slashes too many', spec: nfs('//exp//team/x//') },
  { what: 'an NFS volume with dots', spec: nfs('/exp/./other/../team/x/.') },
  { what: 'an NFS volume with a line feed in a directory below', spec: nfs('/exp/team/x/\n') },
  { what: 'an NFS volume in another case', spec: nfs('/exp/Team/X') },
  { what: 'an NFS volume of the export in another case', spec: nfs('/EXP/team/x') },
  { what: 'an NFS volume by the address of the server', spec: nfs('/exp/team/x', '10.0.0.5') },
  { what: 'an NFS volume by the full name of the server', spec: nfs('/exp/team/x', 'srv.example.com') },
  { what: 'an NFS volume by an IPv6 address', spec: nfs('/exp/team/x', '[fd00::5]') },
  { what: 'an NFS volume below the pseudo-root', spec: nfs('/team/x') },
  { what: 'an NFS volume below a longer path of the export', spec: nfs('/srv/nfs4/exp/team/x') },
  ...['Available', 'Bound', 'Failed', 'Released'].map((phase) => ({
    what: `an NFS volume of policy Retain that is ${phase}`,
    spec: { ...nfs('/exp/team/x'), persistentVolumeReclaimPolicy: 'Retain' as const },
    status: { phase },
  })),
  { what: 'an NFS volume with our name that lies outside the export', spec: nfs('/old/team/x'), annotations: ours() },
  { what: 'subDir', spec: csi({ server: 'srv', share: '/exp', subDir: 'team/x' }) },
  { what: 'subdir', spec: csi({ server: 'srv', share: '/exp', subdir: 'team/x' }) },
  { what: 'SUBDIR, Share and Server', spec: csi({ Server: 'srv', Share: '/exp', SUBDIR: 'team/x' }) },
  { what: 'two spellings of one key', spec: csi({ server: 'srv', share: '/exp', subDir: 'apart', subdir: 'team/x' }) },
  { what: 'slashes around', spec: csi({ server: 'srv', share: '/exp/', subDir: '/team//x/' }) },
  { what: 'a share without a slash', spec: csi({ server: 'srv', share: 'exp', subDir: 'team/x' }) },
  { what: 'a share above the export', spec: csi({ server: 'srv', share: '/', subDir: 'exp/team/x' }) },
  { what: 'a share in the export', spec: csi({ server: 'srv', share: '/exp/team', subDir: 'x' }) },
  { what: 'the whole path as share, of old versions', spec: csi({ server: 'srv', share: '/exp/team/x' }) },
  { what: 'another name of the server', spec: csi({ server: 'NFS.example.com.', share: '/exp', subDir: 'team/x' }) },
  {
    what: 'templates',
    spec: csi({
      server: 'srv',
      share: '/exp',
      subDir: '${pvc.metadata.namespace}/${pvc.metadata.name}',
      ...ofClaim,
    }),
  },
  {
    what: 'templates and nothing to replace them with but the claim',
    spec: {
      ...csi({ server: 'srv', share: '/exp', subDir: '${pvc.metadata.namespace}/${pvc.metadata.name}' }),
      claimRef,
    },
  },
  { what: 'a template that is not known', spec: csi({ server: 'srv', share: '/exp', subDir: '${pvc.uid}' }) },
  ...[
    'srv#exp#team/x',
    'srv#exp#team/x#pvc-1',
    'srv#exp#team/x#pvc-1#retain',
    'srv#exp#team/x##archive',
    'srv/exp/team/x',
  ].map((handle) => ({ what: `the handle ${handle} alone`, spec: csi(undefined, handle) })),
  { what: 'a handle that differs', spec: csi({ server: 'srv', share: '/exp', subDir: 'apart' }, 'srv#exp#team/x#u#') },
  {
    what: 'another name of the driver',
    spec: csi({ server: 'srv', share: '/exp', subDir: 'team/x' }, 'any', 'nfs.example.com'),
  },
  { what: 'another driver with a URL', spec: csi({ url: 'nfs://srv/exp/team/x' }, 'any', 'files.example.com') },
  { what: 'another driver with a mount source', spec: csi({ source: 'nas:/exp/team/x' }, 'any', 'files.example.com') },
  { what: 'another driver with its handle', spec: csi(undefined, 'srv:/exp/team/x', 'files.example.com') },
  { what: 'another driver with the export alone', spec: csi({ export: 'srv:/exp' }, 'volume-1', 'files.example.com') },
  {
    what: 'another driver with the export alone, by another name of the server',
    spec: csi({ source: 'nas.example.com:/exp/' }, 'volume-1', 'files.example.com'),
  },
  {
    what: 'another driver with the export and another name of the server',
    spec: csi({ host: 'nas', path: '/exp' }, 'volume-1', 'files.example.com'),
  },
  {
    what: 'another driver with the export at the end of its handle, on the server',
    spec: csi(undefined, 'files/srv/exp', 'files.example.com'),
  },
  ...[
    'nfs://srv/exp/te%61m/x',
    'srv:/exp/other/../team/x',
    '"/exp/team/x"',
    '{"server":"nas","path":"/exp/team/x"}',
    '[/exp/team/x]',
    'nas:/exp/team/x y',
    '/exp/team/x;y',
    'nas:/exp/team/x,vers=4.1',
  ].map((mount) => ({ what: `another driver with ${mount}`, spec: csi({ mount }, 'v', 'files.example.com') })),
  {
    what: 'another driver with a long text in which the export is',
    spec: csi({ config: `${'a/'.repeat(30_000)},/exp/team/x` }, 'v', 'files.example.com'),
  },
  {
    what: 'another driver with a long text and the server',
    spec: csi({ config: 'a/'.repeat(30_000), address: 'srv' }, 'v', 'files.example.com'),
  },
  {
    what: 'an SMB share of the same folder',
    spec: csi({ source: '//nas/exp', subDir: 'team/x' }, 'nas/exp#team#x#', 'smb.csi.k8s.io'),
  },
  {
    what: 'another driver with the server alone',
    spec: csi({ nasAddr: 'srv.example.com' }, 'volume-1', 'files.example.com'),
  },
  { what: 'a FlexVolume', spec: { flexVolume: { driver: 'x/nfs', options: { server: 'srv', share: '/exp/team/x' } } } },
  { what: 'a hostPath where the server is a node', spec: { hostPath: { path: '/exp/team/x' } } },
  { what: 'a local volume where the server is a node', spec: { local: { path: '/exp/team/x/' }, nodeAffinity } },
  { what: 'what an administrator states', spec: nfs('/elsewhere'), annotations: { [directoryKey]: '/team/x' } },
];

/** None of them uses `team`, or anything in it. */
const others: Kind[] = [
  { what: 'an NFS volume beside it', spec: nfs('/exp/teams/x') },
  { what: 'an NFS volume of another export', spec: nfs('/exp2/team/x') },
  { what: 'the export itself, as charts make it for their own mount', spec: nfs('/exp/') },
  { what: 'what lies above the export', spec: nfs('/') },
  {
    what: 'csi-driver-nfs in another share',
    spec: csi({ server: 'srv', share: '/data', subDir: 'team/x' }, 'srv#data#team/x##'),
  },
  {
    what: 'csi-driver-nfs beside it',
    spec: csi({ server: 'srv', share: '/exp', subDir: 'x/team' }, 'srv#exp#x/team##'),
  },
  {
    what: 'a disk with such words',
    spec: csi({ pool: 'team', ...ofClaim }, 'projects/team/disks/x', 'pd.csi.storage.gke.io'),
  },
  {
    what: 'an iSCSI volume of the server',
    spec: csi({ portal: 'srv:3260', iqn: 'iqn.2005-10.org:x' }, 'x', 'org.democratic-csi.iscsi'),
  },
  {
    what: 'a block volume of the server',
    spec: { ...csi({ address: 'srv' }, 'x', 'files.example.com'), volumeMode: 'Block' },
  },
  {
    what: 'a file share of a cloud that is called as the export',
    spec: csi({ ip: '10.9.0.2', volume: 'exp' }, 'modeInstance/zone/pvc-1/exp', 'filestore.csi.storage.gke.io'),
  },
  {
    what: 'a disk that is called as the export',
    spec: csi(undefined, 'projects/p/disks/exp', 'pd.csi.storage.gke.io'),
  },
  {
    what: 'a bucket that is called as the export',
    spec: csi({ server: 's3' }, 'rg#account#exp#', 'file.csi.azure.com'),
  },
  { what: 'a pool that is called as the export', spec: csi({ pool: 'tank/exp' }, 'v', 'local.csi.openebs.io') },
  { what: 'a path without a server', spec: csi({ rootPath: '/exp' }, 'v', 'cephfs.csi.ceph.com') },
  {
    what: 'another driver with a long text',
    spec: csi({ config: 'a/'.repeat(30_000) }, 'v', 'files.example.com'),
  },
  {
    what: 'another driver whose protocol is called as the server',
    spec: csi({ protocol: 'SRV', mode: 'srv' }, 'v', 'files.example.com'),
  },
  { what: 'a whole SMB share', spec: csi({ source: '//srv/exp' }, 'srv/exp##', 'smb.csi.k8s.io') },
  {
    what: 'a directory of an SMB share',
    spec: csi({ source: '//srv/exp', subDir: 'pvc-7' }, 'srv/exp#pvc-7#u#', 'smb.csi.k8s.io'),
  },
  { what: 'a hostPath', spec: { hostPath: { path: '/mnt/exp/team/x' } } },
  { what: 'what an administrator states', spec: nfs('/exp/team/x', 'nas2'), annotations: { [directoryKey]: 'none' } },
];

function ours(): Record<string, string> {
  return { 'pv.kubernetes.io/provisioned-by': provisionerName };
}

describe('a directory in which another PersistentVolume lies', () => {
  let rig: SubdirRig;
  beforeEach(async () => {
    rig = await SubdirRig.start();
  });
  afterEach(() => rig[Symbol.asyncDispose]());

  const stranger = ({ spec, status, annotations = {} }: Kind): void => {
    const needed = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteMany' as const] };
    const volume = {
      metadata: { name: 'theirs', annotations },
      spec: { ...needed, ...spec },
      ...(status && { status }),
    };
    rig.volumes.set('theirs', volume);
    rig.api.own.create(volumesRef, structuredClone(volume));
  };
  const released = async (parameters: Record<string, string>): Promise<PersistentVolume> => {
    const volume = await rig.provision(rig.storageClass({ pathPattern: 'team', ...parameters }));
    rig.write('team/x/file');
    return volume;
  };
  const audit = (): SubdirAudit => {
    const settings = {
      server: 'srv',
      sharePath: '/exp',
      provisionerName,
      mountPoint: rig.mount,
      httpEndpoint: undefined,
      namespace: undefined,
    };
    return new SubdirAudit({ settings, lock: undefined, client: rig.api.client, share: rig.share });
  };

  for (const kind of users) {
    test(`stays, whatever asks for its removal: ${kind.what}`, async () => {
      for (const parameters of [{ onDelete: 'delete' }, { archiveOnDelete: 'true' }]) {
        const volume = await released(parameters);
        if (!rig.volumes.has('theirs')) stranger(kind);
        await assert.rejects(rig.delete(volume), /^Error: volume theirs.*(directory=none|Correct or delete theirs)/);
        rig.volumes.delete('pvc-1');
      }
      const { findings, incomplete } = await audit().look(signal);
      assert.deepEqual(
        findings.filter(({ state }) => state === 'unclaimed').map(({ id }) => id),
        [],
      );
      for (const id of ['team', 'team/x']) {
        const finding = { state: 'unclaimed', id, detail: '', isDeletable: true, isTrouble: true };
        await assert.rejects(audit().delete(finding, signal), /PersistentVolume theirs/);
      }
      assert.ok(incomplete.every((each) => each.includes('theirs')));
      assert.equal(rig.read('team/x/file'), 'data');
    });
  }

  for (const kind of others) {
    test(`is another one, and is removed: ${kind.what}`, async () => {
      const volume = await released({ onDelete: 'delete' });
      stranger(kind);
      await rig.delete(volume);
      assert.ok(!rig.exists('team'));
      mkdirSync(rig.path('orphan'));
      const { findings } = await audit().look(signal);
      assert.ok(findings.some(({ state, id }) => state === 'unclaimed' && id === 'orphan'));
    });
  }

  test('stays as an archive, though its retention is over', async () => {
    const volume = await rig.provision(rig.storageClass({ archiveRetention: '1ms' }));
    rig.write('ns-c-pvc-1/file');
    await rig.delete(volume);
    stranger({ what: '', spec: csi({ server: 'nas', share: '/exp/', subDir: 'archived-ns-c-pvc-1/' }) });
    const startedMs = Date.now();
    while (Date.now() < startedMs + 5) await systemClock.sleep(1);
    const calls = new PatientCalls({ clock: systemClock, mountPoint: rig.mount });
    const logger = recordedLogger(rig.log);
    const { share, volumesWith } = rig;
    await sweepArchives({ share, calls, client: rig.api.client, volumesWith, clock: systemClock, logger }, signal);
    assert.equal(rig.read('archived-ns-c-pvc-1/file'), 'data');
    assert.match(rig.log.at(-1)?.message ?? '', /^The archive is kept/);
  });

  test('that is a snapshot of csi-driver-nfs is not deleted by an audit', async () => {
    const id = 'snapshot-016f784f-56f4-44d1-9041-5f59e82dbce1';
    mkdirSync(rig.path(id));
    const { findings } = await audit().look(signal);
    assert.deepEqual(
      findings.map(({ state, isDeletable, isTrouble }) => [state, isDeletable, isTrouble]),
      [['snapshot', false, false]],
    );
  });
});

describe('two released volumes of two provisioners', () => {
  let rig: SubdirRig;
  beforeEach(async () => {
    rig = await SubdirRig.start();
  });
  afterEach(() => rig[Symbol.asyncDispose]());

  const another = 'example.com/another';
  const fates = {
    remove: { onDelete: 'delete' },
    archive: { archiveOnDelete: 'true' },
    retain: { onDelete: 'retain' },
  };

  interface Sides {
    mine: { path: string; fate: keyof typeof fates };
    theirs: { path: string; fate: keyof typeof fates };
  }

  /** Both as the API server has them after their claims were deleted. */
  const released = ({ mine, theirs }: Sides, more: Partial<PersistentVolume['spec']> = {}, phase = 'Released') => {
    rig.write(`${mine.path}/mine`);
    rig.write(`${theirs.path}/theirs`);
    const volumeOf = (name: string, provisioner: string, { path, fate }: Sides['mine']): PersistentVolume => {
      const { metadata } = rig.storageClass(fates[fate], { provisioner });
      const made = {
        metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': provisioner } },
        spec: {
          ...nfs(`/exp/${path}`),
          storageClassName: metadata.name,
          persistentVolumeReclaimPolicy: 'Delete' as const,
        },
        status: { phase: 'Released' },
      };
      rig.volumes.set(name, made);
      return made;
    };
    const ours = volumeOf('ours', provisionerName, mine);
    const stranger = volumeOf('stranger', another, theirs);
    Object.assign(stranger.spec, more);
    if (more.csi !== undefined) delete stranger.spec.nfs;
    stranger.status = { phase };
    return { ours, stranger };
  };
  const bothDeleted = async ({ ours, stranger }: ReturnType<typeof released>): Promise<void> => {
    const second = rig.another(another);
    const remove = {
      ours: () => rig.provisioner.delete(ours, { signal }),
      stranger: () => second.delete(stranger, { signal }),
    };
    for (let round = 0; round < 2; round++) {
      for (const name of ['ours', 'stranger'] as const) {
        if (
          rig.volumes.has(name) &&
          (await remove[name]().then(
            () => true,
            () => false,
          ))
        )
          rig.volumes.delete(name);
      }
    }
    assert.deepEqual([...rig.volumes.keys()], [], 'no volume is left');
  };

  for (const [mine, theirs] of [
    ['same', 'same'],
    ['up', 'up/in'],
    ['up/in', 'up'],
  ] as const) {
    test(`go where both are to be removed: ${mine} and ${theirs}`, async () => {
      await bothDeleted(released({ mine: { path: mine, fate: 'remove' }, theirs: { path: theirs, fate: 'remove' } }));
      assert.ok(!rig.exists(mine) && !rig.exists(theirs));
    });

    test(`go where both are to be archived, with all data: ${mine} and ${theirs}`, async () => {
      await bothDeleted(released({ mine: { path: mine, fate: 'archive' }, theirs: { path: theirs, fate: 'archive' } }));
      const kept = readdirSync(rig.mount, { recursive: true }).map(String);
      assert.deepEqual(
        kept
          .map((file) => path.basename(file))
          .filter((name) => ['mine', 'theirs'].includes(name))
          .sort(),
        ['mine', 'theirs'],
      );
    });

    test(`go where one is to be archived, and nothing of that one is lost: ${mine} and ${theirs}`, async () => {
      await bothDeleted(released({ mine: { path: mine, fate: 'remove' }, theirs: { path: theirs, fate: 'archive' } }));
      const kept = readdirSync(rig.mount, { recursive: true }).map(String);
      assert.ok(
        kept.some((file) => /^archived-.*theirs$/.test(file)),
        kept.join(),
      );
    });
  }

  for (const [what, change] of [
    ['of policy Retain', () => released(removed, { persistentVolumeReclaimPolicy: 'Retain' })],
    ['that is bound', () => released(removed, {}, 'Bound')],
    ['that failed', () => released(removed, {}, 'Failed')],
    ['whose class is gone', () => released(removed, { storageClassName: 'gone' })],
    ['whose class keeps it', () => released({ ...removed, theirs: { path: 'same', fate: 'retain' } })],
    ['of csi-driver-nfs', () => released(removed, csi(undefined, 'srv#exp#same#u#retain'))],
  ] as const) {
    test(`are held by one ${what}`, async () => {
      const { ours } = change();
      await assert.rejects(rig.provisioner.delete(ours, { signal }), /^Error: volume stranger/);
      assert.ok(rig.exists('same/theirs'));
    });
  }
});

const removed = { mine: { path: 'same', fate: 'remove' }, theirs: { path: 'same', fate: 'remove' } } as const;
