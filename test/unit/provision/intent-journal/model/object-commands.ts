/** What others do with claims and volumes, as commands. */
import fc from 'fast-check';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  selectedNodeKey,
  storageProvisionerKey,
} from '../../../../../src/provision/objects.ts';
import { type Command, command, picks } from './command.ts';
import { keepStorage, renameVolume, usedVolumes } from './outsiders.ts';
import { driverName } from './sim-provisioner.ts';
import { claimKey, type World } from './world.ts';

const slots = fc.nat({ max: 1 });

function onClaim(
  text: string,
  change: (world: World, claim: PersistentVolumeClaim, slot: number) => void,
  can: (claim: PersistentVolumeClaim) => boolean = () => true,
): fc.Arbitrary<Command> {
  return slots.map((slot) =>
    command(
      `${text} ${slot}`,
      (world) => {
        const claim = world.claim(slot);
        return claim !== undefined && can(claim);
      },
      (world) => {
        const claim = world.claim(slot);
        if (claim !== undefined) change(world, claim, slot);
      },
    ),
  );
}

function isElsewhere({ metadata }: PersistentVolumeClaim): boolean {
  return metadata.annotations?.[storageProvisionerKey] !== driverName;
}

const isUnbound = ({ spec }: PersistentVolumeClaim): boolean => (spec.volumeName ?? '') === '';

function editClaim(
  text: string,
  edit: (claim: PersistentVolumeClaim) => void,
  can?: (claim: PersistentVolumeClaim) => boolean,
): fc.Arbitrary<Command> {
  return onClaim(
    text,
    (world, _, slot) => world.api.edit<PersistentVolumeClaim>('persistentvolumeclaims', claimKey(slot), edit),
    can,
  );
}

export const claimCommands: fc.Arbitrary<Command>[] = [
  onClaim('delete claim', (world, _, slot) => world.api.remove('persistentvolumeclaims', claimKey(slot))),
  editClaim('terminate claim', (claim) => {
    claim.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  }),
  editClaim(
    'bind elsewhere: claim',
    (claim) => {
      claim.spec.volumeName = 'elsewhere';
      claim.status = { phase: 'Bound' };
    },
    isUnbound,
  ),
  editClaim(
    'hand to another provisioner: claim',
    ({ metadata }) => {
      metadata.annotations = { [storageProvisionerKey]: 'another' };
    },
    isUnbound,
  ),
  fc.record({ node: fc.constantFrom('', 'n1', 'n2'), slot: slots }).map(({ node, slot }) =>
    command(
      `select node ${JSON.stringify(node)}: claim ${slot}`,
      (world) => world.claim(slot) !== undefined,
      (world) => {
        world.api.edit<PersistentVolumeClaim>('persistentvolumeclaims', claimKey(slot), ({ metadata }) => {
          const { [selectedNodeKey]: _node, ...annotations } = metadata.annotations ?? {};
          metadata.annotations = { ...annotations, ...(node !== '' && { [selectedNodeKey]: node }) };
        });
      },
    ),
  ),
  onClaim('hand back: claim', (world, _, slot) => world.handBack(slot), isElsewhere),
];

export const createClaim = fc
  .record({ slot: slots, className: fc.constantFrom('delete', 'delete', 'delete', 'retain') })
  .map(({ slot, className }) =>
    command(
      `create claim ${slot} of class ${className}`,
      (world) => world.claim(slot) === undefined,
      (world) => {
        if (className === 'retain') world.mayBeReported = true;
        world.createClaim(slot, className);
      },
    ),
  );

function onUsedVolume(text: string, act: (world: World, volume: PersistentVolume) => void): fc.Arbitrary<Command> {
  return picks.map((pick) =>
    command(
      `${text} ${pick}`,
      (world) => usedVolumes(world).length > 0,
      (world) => {
        world.network.executeLate(); // nobody is quicker than the last requests of a process that has ended
        const volumes = usedVolumes(world);
        const volume = volumes[pick % volumes.length];
        if (volume !== undefined) act(world, volume);
      },
    ),
  );
}

export const volumeCommands: fc.Arbitrary<Command>[] = [
  fc.constant(
    command(
      'Kubernetes binds',
      ({ volumes }) => volumes.length > 0,
      (world) => world.bind(),
    ),
  ),
  picks.map((pick) =>
    command(
      `an administrator makes a volume for storage ${pick}`,
      ({ backend }) => backend.fitHandles().length > 0,
      (world) => {
        const handles = world.backend.fitHandles();
        world.adopt(handles[pick % handles.length] ?? '');
      },
    ),
  ),
  picks.map((pick) =>
    command(
      `policy Retain for volume ${pick}`,
      ({ volumes }) => volumes.length > 0,
      (world) => {
        const volume = world.volumes[pick % world.volumes.length];
        world.api.edit<PersistentVolume>('persistentvolumes', volume?.metadata.name ?? '', ({ spec }) => {
          spec.persistentVolumeReclaimPolicy = 'Retain';
        });
      },
    ),
  ),
  onUsedVolume('an administrator keeps the storage of volume', keepStorage),
  onUsedVolume('an administrator renames volume', renameVolume),
  fc.constant(
    command(
      'the classes are made again',
      () => true,
      (world) => world.changeClasses(),
    ),
  ),
];
