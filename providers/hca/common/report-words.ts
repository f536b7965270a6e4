/** What network and system say of packets of a connection, with what to do about it: for people. */
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

/** Of packets of the path MTU: a router may drop what is too big for it without a word. */
export function neverAnswered(peer: Gid, mtuBytes: number): string {
  const bytes = longestPacketBytes(peer, mtuBytes);
  return `no packet of ${bytes} bytes was ever answered; ${smallerMtuRemedy(peer, bytes - 1)}`;
}
