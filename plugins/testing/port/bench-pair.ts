/** A pair of ports with a path and memory, and the packets that the suite sends. */
import assert from 'node:assert/strict';
import type { Gid, PacketPort, PacketPortHandlers } from 'dapl/spi';
import { type BehaviourGroup, type Claim, group } from '../suite/behaviour.js';
import type { PortNeed, PortPair } from './fixture.js';
import { header, type PacketSpec, receiveSome, sendAll } from './harness.js';
import type { Resources } from './resources.js';

export const nothing: PacketPortHandlers = { onReadable() {}, onWritable() {}, onReport() {} };

export interface Bench extends PortPair {
  readonly path: number;
  readonly memory: Uint8Array;
  readonly region: number;
}

export interface OpenBench extends Bench {
  /** Resources that already kept the process alive before the ports were opened. */
  readonly before: Resources;
  /** Closes the ports and their fixture, once. */
  close(): Promise<void>;
}

export function portGroup(
  name: string,
  state: (claim: Claim<OpenBench, PortNeed>) => void,
): BehaviourGroup<OpenBench, PortNeed> {
  return group<OpenBench, PortNeed>(name, state);
}

export function gidOf(port: PacketPort, index = 0): Gid {
  const gid = port.gids[index];
  assert.ok(gid);
  return gid;
}

/** A packet with payload from the region, padded as in IBTA 9.2.6. */
export function packet(bench: Bench, psn: number, bytes: number, headerBytes = 12): PacketSpec {
  const offset = (psn * 4099) % (bench.memory.length - 4096);
  const segments = bytes === 0 ? [] : [{ region: bench.region, offset, length: bytes }];
  return { path: bench.path, header: header(psn, -bytes & 3, headerBytes), segments };
}

export function wireBytes(bench: Bench, spec: PacketSpec): Uint8Array {
  const parts = [
    spec.header,
    ...(spec.segments ?? []).map((s) => bench.memory.subarray(s.offset, s.offset + s.length)),
    new Uint8Array(((spec.header[1] ?? 0) >> 4) & 3),
  ];
  return new Uint8Array(Buffer.concat(parts));
}

export async function assertDelivered(bench: Bench, specs: readonly PacketSpec[]): Promise<void> {
  await sendAll(bench.a, specs);
  const received = await receiveSome(bench.b, specs.length);
  assert.equal(received.length, specs.length);
  specs.forEach((spec, i) => {
    assert.deepEqual(received[i]?.bytes, wireBytes(bench, spec), `packet ${String(i)}`);
  });
}
