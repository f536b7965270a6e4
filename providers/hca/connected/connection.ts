/** A queue pair that has one peer: of RC, XRC or UC. */
import type { SoftQueuePair } from '../queue-pair/queue-pair.js';
import type { PeerPath } from '../sending/peer-path.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { Access } from '../../../core/spi/index.js';
import { OPCODES, OPERATION } from '../../../core/spi/wire/opcode.js';

/** A set of rights that no queue pair grants. */
const NEVER = 0xff;

export interface ConnectedQueuePair extends SoftQueuePair {
  /** Added to the opcodes of RC to get those of this transport. */
  readonly opcodeBase: number;
  readonly peerPath: PeerPath;
  /** The one UDP port that the peer sends from; 0 for any. */
  readonly sourcePort: number;
  readonly destinationQpn: number;
  readonly mtuBytes: number;
}

/** True if a packet comes from the peer and has an allowed P_Key; counts other packets as drops. */
export function isFromPeer(qp: ConnectedQueuePair, rx: ReceivedPacket): boolean {
  const { drops } = qp.hca.counters;
  if (!qp.peerPath.leadsTo(rx)) drops.wrongSource += 1;
  else if (qp.sourcePort !== 0 && rx.sourcePort !== qp.sourcePort) drops.wrongPort += 1;
  else if (!qp.hca.pkeyAllowed(rx)) drops.badPkey += 1;
  else return true;
  return false;
}

/** Rights that a queue pair must grant its peer for a request (IBTA 9.7.4.1.3), by its opcode. */
const RIGHTS_OF = Uint8Array.from(OPCODES, ({ operation, headers }) => {
  if (operation === OPERATION.send) return 0;
  if (operation === OPERATION.write) return Access.REMOTE_WRITE;
  if (operation === OPERATION.readRequest) return Access.REMOTE_READ;
  return headers.includes('AtomicETH') ? Access.REMOTE_ATOMIC : NEVER;
});

/** @param access of the queue pair, as Access */
export function permits(access: number, opcode: number): boolean {
  const rights = RIGHTS_OF[opcode]!;
  return (access & rights) === rights;
}
