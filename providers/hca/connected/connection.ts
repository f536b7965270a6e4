/** A queue pair that has one peer: of RC, XRC or UC. */
import type { SoftQueuePair } from '../queue-pair/queue-pair.js';
import type { PeerPath } from '../sending/peer-path.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { Access } from '../../../core/spi/index.js';
import { OPERATION } from '../../../core/spi/wire/opcode.js';

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

// Access rights that a queue pair grants its peer (IBTA 9.7.4.1.3).

/**
 * @param access of the queue pair, as Access
 * @param operation of a request, as OPERATION
 */
export function permits(access: number, operation: number): boolean {
  switch (operation) {
    case OPERATION.send:
      return true;
    case OPERATION.write:
      return (access & Access.REMOTE_WRITE) !== 0;
    case OPERATION.readRequest:
      return (access & Access.REMOTE_READ) !== 0;
    default:
      return isAtomicOperation(operation) && (access & Access.REMOTE_ATOMIC) !== 0;
  }
}

export function isAtomicOperation(operation: number): boolean {
  return operation === OPERATION.compareSwap || operation === OPERATION.fetchAdd;
}
