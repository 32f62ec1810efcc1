/**
 * Which of the topologies is preferred for a claim's volume when no node was selected. The claims of a StatefulSet,
 * `<template>-<set>-<ordinal>`, take one after the other, and all claims of one replica get the same one.
 */

const uint32 = 2 ** 32;

/** Index from 0 to `count - 1`, always the same for a name. Names as of the API: not empty. */
export function firstTopology(claimName: string, count: number): number {
  const { text, index } = hashInput(claimName);
  return ((fnv1(text) + index) % uint32) % count;
}

/** What of a claim's name is hashed, and the ordinal to add. */
export function hashInput(claimName: string): { text: string; index: number } {
  const [, before = '', digits] = /^(.*)-([0-9]+)$/s.exec(claimName) ?? [];
  const index = Number(digits);
  if (digits === undefined || index >= uint32) return { text: claimName, index: 0 };
  return { text: before.slice(before.lastIndexOf('-') + 1), index };
}

/** FNV-1 with 32 bits over the UTF-8 form: multiplies first, then takes the byte in (draft-eastlake-fnv, "FNV-1"). */
export function fnv1(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash, 0x01000193) ^ byte;
  return hash >>> 0;
}
