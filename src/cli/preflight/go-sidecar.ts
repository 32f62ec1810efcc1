/** How a container of the Go sidecar is recognised, and what its releases changed. */
import type { Container } from './workload.ts';

/** The last part of an image's name, as mirrors and distributions spell it. */
const imageName = /(?:^|-)(?:csi-(?:external-)?|external-)provisioner(?:-(?:rhel\d+|amd64|arm64|arm|ppc64le|s390x))?$/;
/** Programs whose names are similar. */
const otherImages = /nfs-subdir|nfs-client|nfs-ganesha|nfs-server|local-static/;

/** Name and tag of an image, without registry and digest. */
function imageParts(image: string): { name: string; tag: string } {
  const [reference = ''] = image.split('@');
  const last = reference.slice(reference.lastIndexOf('/') + 1);
  const colon = last.indexOf(':');
  return colon < 0 ? { name: last, tag: '' } : { name: last.slice(0, colon), tag: last.slice(colon + 1) };
}

export function isProvisionerImage(image: string): boolean {
  const { name } = imageParts(image);
  return imageName.test(name) && !otherImages.test(name);
}

/** By its image, or by its name and arguments, as in a patch that leaves out the image. */
export function isProvisionerContainer({ name, image, args, command = [] }: Container): boolean {
  if (isProvisionerImage(image)) return true;
  const words = [...command, ...args];
  return /^(?:csi-|external-)?provisioner$/.test(name) && words.some((word) => word.startsWith('--csi-address'));
}

/** Releases in which something changed that a container without further flags notices. */
export interface GoRelease {
  major: number;
  minor: number;
}

/** By the tag of an image with the project's own name: distributions number theirs in another way. */
export function goRelease(image: string): GoRelease | undefined {
  const { name, tag } = imageParts(image);
  if (!/^(?:[a-z-]*-)?(?:csi|external)-provisioner$/.test(name) || name.startsWith('ose-')) return undefined;
  const [, major, minor] = /^v?(\d+)\.(\d+)(?:\.\d+)?(?:-|$)/.exec(tag) ?? [];
  if (major === undefined || major === '0') return undefined; // older than its first release, or an image of this project
  return { major: Number(major), minor: Number(minor) };
}

/** Whether a release is older than another; one that is not known is taken for the newest. */
export function isBefore(release: GoRelease | undefined, { major, minor }: GoRelease): boolean {
  if (release === undefined) return false;
  return release.major < major || (release.major === major && release.minor < minor);
}

export function releaseText({ major, minor }: GoRelease): string {
  return `v${major}.${minor}`;
}
