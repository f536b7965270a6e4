/**
 * What network and system have said of the packets of a connection: noted in its flight record, and
 * told when its retries run out with nothing acknowledged since. Nothing here is a retry: the one
 * hint that is acted upon, a port that nothing listens at, has the oldest packet sent again.
 */
import { describeReport, type NetworkReport, REFUSAL_CODES } from '../../../core/spi/index.js';
import { FLIGHT } from '../common/flight-events.js';
import { causeOf, neverAnswered } from '../common/report-words.js';
import type { ReliableQueuePair } from '../connected/connection.js';

/** The requester, as far as hints of the network go. */
export interface HintedRequester {
  /** PSN of the oldest unacknowledged packet. */
  readonly una: number;
  readonly outstanding: boolean;
  readonly waitingForReceiver: boolean;
  sendProbe(): void;
}

/** A connection that hints may be about. */
export interface HintedQueuePair extends ReliableQueuePair {
  readonly requester: HintedRequester;
}

export class RcNetworkReports {
  /** What has been said of packets from the oldest unacknowledged on. */
  private last: NetworkReport | undefined = undefined;
  private una = -1;
  /** What was to blame when the retries had run out. */
  cause: string | undefined = undefined;

  constructor(private readonly qp: HintedQueuePair) {}

  /** Each kind once for one oldest packet: hints come by the dozen. */
  note(report: NetworkReport): void {
    const { una } = this.qp.requester;
    const same = this.una === una ? this.last : undefined;
    this.una = una;
    if (same?.type === report.type) return;
    // What is too long now may be refused for another reason later, and stays too long.
    const isSize = report.type === 'too-big' || report.type === 'too-long';
    if (!same || isSize) this.last = report;
    this.write(report);
  }

  private write(report: NetworkReport): void {
    const { qp } = this;
    const { una } = qp.requester;
    switch (report.type) {
      case 'too-big':
        return qp.note(FLIGHT.TOO_BIG, report.mtuBytes, qp.mtuBytes);
      case 'too-long':
        return qp.note(FLIGHT.TOO_LONG, report.packetBytes, report.mtuBytes);
      case 'refused':
        return qp.note(FLIGHT.REFUSED, Math.max(0, REFUSAL_CODES.indexOf(report.code)), una);
      case 'unreachable':
      case 'port-unreachable':
        return qp.note(report.type === 'unreachable' ? FLIGHT.NO_WAY : FLIGHT.UNREACHABLE, 0, una);
      case 'peer-gone':
        return qp.note(FLIGHT.PEER_GONE, report.path);
    }
  }

  /**
   * A hint that the peer's process is gone: the oldest packet goes again, not for every hint, and
   * it is no retry. Whoever knows two addresses can forge hints; the ACK timer alone ends anything.
   */
  onPortUnreachable(): void {
    const { hca, memory, requester } = this.qp;
    if (!requester.outstanding || requester.waitingForReceiver) return;
    if (hca.nowUs - memory.lastHintUs < hca.parameters.unreachableRetryUs) return;
    memory.lastHintUs = hca.nowUs;
    requester.sendProbe();
  }

  /** The memory that the connection goes through is gone, and with it the connection. */
  onPeerGone(report: NetworkReport): void {
    this.write(report);
    this.cause = describeReport(report);
  }

  /** The retries have run out. */
  onRetriesSpent(): void {
    const { memory, requester, mtuBytes } = this.qp;
    const { peerGid } = memory;
    if (!peerGid) return;
    const last = this.una === requester.una ? this.last : undefined;
    if (last) this.cause = causeOf(last, peerGid, mtuBytes);
    else if (this.isFirstLong) {
      this.qp.note(FLIGHT.NEVER_ANSWERED, mtuBytes, requester.una);
      this.cause = neverAnswered(peerGid, mtuBytes);
    }
  }

  /** The oldest packet is full, and no full one of this send queue's has ever been answered. */
  private get isFirstLong(): boolean {
    const { memory, oldest, fetched, sendRing, requester } = this.qp;
    const slotOf = (index: number): number => index & sendRing.mask;
    const isLong = (index: number): boolean => memory.packets(slotOf(index)) > 1;
    if (!isLong(oldest) || memory.firstPsn(slotOf(oldest)) !== requester.una) return false;
    // What a slot says of an earlier request stays there until the next one takes it.
    const earlier = sendRing.mask + 1 - ((fetched - oldest) >>> 0);
    for (let n = 1; n <= earlier; n++) if (isLong(oldest - n)) return false;
    return true;
  }
}
