/** A queue pair that has one peer: of RC, XRC or UC. */
import type { SoftQueuePair } from '../queue-pair/queue-pair.js';
import type { PeerPath } from '../sending/peer-path.js';
import type { ReceivedPacket } from '../common/received-packet.js';

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
