/**
 * Texts for people about reports of the network and the system on packets of a connection, with
 * what to do.
 */
import {
  describeReport,
  type Gid,
  longestPacketBytes,
  type NetworkReport,
  smallerMtuRemedy,
} from '../../../core/spi/index.js';

/** @param mtuBytes the path MTU of the connection */
export function causeOf(report: NetworkReport, peer: Gid, mtuBytes: number): string {
  const text = describeReport(report);
  if (report.type === 'too-long') {
    const carriedBytes = report.mtuBytes || report.packetBytes - 1;
    return `${text}; ${smallerMtuRemedy(peer, carriedBytes)}`;
  }
  if (report.type !== 'too-big') return text;
  const bytes = longestPacketBytes(peer, mtuBytes);
  return `${text}, ours have up to ${bytes}; ${smallerMtuRemedy(peer, report.mtuBytes)}`;
}

/**
 * Text about unanswered packets of the path MTU: a router may silently drop packets that are too
 * big.
 */
export function neverAnswered(peer: Gid, mtuBytes: number): string {
  const bytes = longestPacketBytes(peer, mtuBytes);
  return `no packet of ${bytes} bytes was ever answered; ${smallerMtuRemedy(peer, bytes - 1)}`;
}
