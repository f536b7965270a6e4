/** Common steps of the behaviours of memory windows. */
import assert from 'node:assert/strict';
import {
  DatDtoStatus,
  type DatEvent,
  type Lmr,
  MemPrivileges,
  type RemoteAddress,
  type Rmr,
} from 'dapl';
import type { CompliancePair } from '../fixture.js';
import { assertAll, connected, type Peers, settle, textOf } from '../peer.js';

export const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;
export const BOTH = REMOTE_READ | REMOTE_WRITE;
export const LOCAL = LOCAL_READ | LOCAL_WRITE;

/** How a window is created: for a protection zone, or for one endpoint. */
export type Make = 'createRmr' | 'createRmrForEp';

export interface Scene extends Peers {
  /** The passive side's region, whose own key allows no remote access. */
  readonly lmr: Lmr;
  readonly rmr: Rmr;
}

export async function scene(pair: CompliancePair, make: Make, privileges = LOCAL): Promise<Scene> {
  const peers = await connected(pair);
  const { ia, pz } = peers.passive;
  const lmr = ia.allocate(8192, { pz, privileges });
  lmr.bytes.fill(0xee);
  peers.active.lmr.bytes.fill(0x11);
  return { ...peers, lmr, rmr: ia[make](pz) };
}

export function at(rmr: Rmr, offsetBytes = 0): RemoteAddress {
  return { address: (rmr.address ?? 0n) + BigInt(offsetBytes), rmrContext: rmr.rmrContext ?? 0 };
}

export function write({ active }: Scene, remote: RemoteAddress, bytes = 64): void {
  active.ep.postRdmaWrite(active.lmr.segment(0, bytes), 1, remote);
}

/** Waits for the completion of a bind on the passive side. */
export async function bound({ passive }: Scene, status = 'SUCCESS'): Promise<DatEvent> {
  const event = await passive.next();
  assert.ok(event.type === 'rmr-bind', textOf(event));
  assert.equal(event.status, DatDtoStatus[status as 'SUCCESS'], textOf(event));
  return event;
}

/** Asserts that a write is refused and changes no memory. */
export async function assertRefused(here: Scene): Promise<void> {
  const { active, pair, lmr } = here;
  await active.expect('dto 1 REMOTE_ACCESS', 'BROKEN');
  await settle(pair);
  assertAll(lmr.bytes, 0xee);
}
