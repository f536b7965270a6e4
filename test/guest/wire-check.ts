import assert from 'node:assert/strict';

import { icrcFault } from './icrc.js';
import { readPcap } from './pcap.js';
import { CM_ATTRIBUTE, dissect, type Dissection } from './tshark.js';

/** Reads a capture: every packet is RoCEv2 with a right ICRC, and none is malformed. */
export async function checkCapture(file: string): Promise<Dissection[]> {
  const frames = readPcap(file);
  assert.notEqual(frames.length, 0, `${file} is empty`);
  const faults = frames.flatMap((frame, index) => {
    const fault = icrcFault(frame);
    return fault === undefined ? [] : [`frame ${index + 1}: ${fault}`];
  });
  assert.deepEqual(faults, [], `${file}: ICRC`);

  const packets = await dissect(file);
  assert.equal(packets.length, frames.length, `${file}: tshark read another number of packets`);
  const odd = packets.filter((packet) => packet.isMalformed || packet.opcode === undefined);
  assert.deepEqual(odd, [], `${file}: malformed`);
  return packets;
}

/**
 * CM attributes in the order seen, duplicates (retries) once. Without MRA: it asks for patience,
 * which who is busy may do in every conversation (conversation.ts knows where).
 */
export function cmSequence(packets: readonly Dissection[]): number[] {
  const attributes = packets.flatMap(({ cmAttribute }) => cmAttribute ?? []);
  return [...new Set(attributes.filter((attribute) => attribute !== CM_ATTRIBUTE.MRA))];
}
