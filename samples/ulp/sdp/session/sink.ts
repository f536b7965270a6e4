/**
 * The receiving half of a connection: bytes received and not consumed, memory of the peer to read
 * (SrcAvail), and own memory that the peer writes to (SinkAvail).
 */
import type { Advert, Body, Mode } from '../wire/index.js';
import type { Area, Exposed, SessionConfig, SessionHost } from './host.js';
import { FIRST_MODE, HALF_OF, isModeChange, MODE_POLICY, MODE_RULES } from './modes.js';
import type { Outbox } from './outbox.js';
import { expect } from './protocol-error.js';

/** RDMA Reads in flight at a time. */
const MOST_READS = 4;
/** Outstanding SinkAvails at a time. */
const MOST_OFFERS = 2;
/** Requests that reads leave free for messages. */
const REQUESTS_KEPT = 8;
/** SrcAvails in COMBINED after which the peer is asked for PIPELINED. */
const ADVERTS_TO_PIPELINE = 2;

/** Received bytes, in order. */
export interface Arrived {
  readonly bytes: Uint8Array;
  /** Returns the memory. */
  release(): void;
}

/** A received SrcAvail. */
interface Incoming {
  /** True if it is not read: the source must send copies. */
  readonly isRefused: boolean;
  readonly rkey: number;
  /** Address of the first byte that no read was posted for. */
  address: bigint;
  /** Bytes that no read was posted for. */
  unposted: number;
  /** Bytes that were read, and not reported to the peer. */
  read: number;
}

interface Reading {
  readonly area: Area;
  readonly from: Incoming;
  readonly bytes: number;
}

/** An outstanding SinkAvail. */
interface Offer {
  readonly area: Area;
  readonly exposed: Exposed;
}

export interface SinkLink {
  readonly host: SessionHost;
  readonly outbox: Outbox;
  readonly config: SessionConfig;
  /** True if this side has ended sending, or will: later offers might not be answered. */
  isEnding(): boolean;
}

export class Sink {
  mode: Mode = FIRST_MODE;
  private readonly ready: Arrived[] = [];
  /** Consumed bytes of the first entry of `ready`. */
  private consumed = 0;
  private readonly incoming: Incoming[] = [];
  private readonly readings: Reading[] = [];
  private readonly offers: Offer[] = [];
  private readonly replies: Body[] = [];
  /** True if the source has cancelled its outstanding SrcAvails. */
  private isCancelled = false;
  private offerCancel: 'none' | 'wanted' | 'sent' = 'none';
  /** True if its memory cannot be opened to the peer. */
  private cannotOffer = false;
  /** Messages with data, modulo 2^32. Older stacks use it to find SinkAvails that crossed data. */
  private dataMessages = 0;
  private advertsSeen = 0;
  private fullCopies = 0;
  private isDiscarding = false;
  private hasEnded = false;

  constructor(private readonly link: SinkLink) {}

  /** True if the peer has ended sending. */
  get isEnded(): boolean {
    return this.hasEnded;
  }

  get isDropping(): boolean {
    return this.isDiscarding;
  }

  get hasBytes(): boolean {
    return this.ready.length > 0;
  }

  get outstandingOffers(): number {
    return this.offers.length;
  }

  /** True if nothing is outstanding. */
  get isSettled(): boolean {
    const { incoming, replies, offers, offerCancel } = this;
    return incoming.length + replies.length + offers.length === 0 && offerCancel === 'none';
  }

  peek(): Uint8Array | undefined {
    return this.ready[0]?.bytes.subarray(this.consumed);
  }

  consume(bytes: number): void {
    const [head] = this.ready;
    if (head === undefined) return;
    this.consumed += bytes;
    if (this.consumed < head.bytes.length) return;
    this.consumed = 0;
    this.ready.shift();
    head.release();
  }

  /** Drops all bytes received now and later. Reads that were posted are completed. */
  discard(): void {
    this.isDiscarding = true;
    this.dropReady();
    this.cancelOffers();
  }

  dropReady(): void {
    this.consumed = 0;
    for (const arrived of this.ready.splice(0)) arrived.release();
  }

  /** The session is over; received bytes stay readable. */
  end(): void {
    this.incoming.length = 0;
    this.replies.length = 0;
    for (const { area } of this.readings.splice(0)) area.release();
    this.takeOffersBack();
  }

  /** Performs one pending action, if possible now. */
  step(): boolean {
    const { outbox } = this.link;
    const [reply] = this.replies;
    if (reply !== undefined) {
      if (!outbox.control(reply)) return false;
      this.replies.shift();
      return true;
    }
    if (this.offerCancel === 'wanted') {
      if (!outbox.control({ mid: 'SINK_AVAIL_CANCEL' })) return false;
      this.offerCancel = 'sent';
      return true;
    }
    return this.read() || this.changeMode() || this.offer();
  }

  /** True if the source should change to PIPELINED. */
  get wantsPipe(): boolean {
    const { zeroCopy, peer, maxAdverts } = this.link.config;
    if (zeroCopy.most !== 'PIPELINED' || this.mode !== 'COMBINED' || this.hasEnded) return false;
    return Math.min(peer.maxAdverts, maxAdverts) > 1 && this.advertsSeen >= ADVERTS_TO_PIPELINE;
  }

  /** Handles the payload of Data, of a SrcAvail or beside a SinkAvail. */
  onData(arrived: Arrived): void {
    expect(this.incoming.length === 0, () => 'Data, and a SrcAvail before it is outstanding');
    this.dataMessages = (this.dataMessages + 1) >>> 0;
    const isFull = arrived.bytes.length >= this.link.config.receiveBytes / 2;
    if (isFull && this.mode === 'BUFFERED') this.fullCopies++;
    this.arrive(arrived);
  }

  /** @param inline the part that the message contains: none in pipelined mode */
  onSrcAvail(advert: Advert, inline: Arrived | undefined): void {
    const { srcAvails } = MODE_RULES[this.mode];
    const { maxAdverts, zeroCopy } = this.link.config;
    const carried = inline?.bytes.length ?? 0;
    const most = srcAvails === 'one' ? 1 : maxAdverts;
    expect(srcAvails !== 'none', () => `SrcAvail in ${this.mode} mode`);
    expect(
      this.incoming.length < most,
      () => `more than ${most} SrcAvail outstanding in ${this.mode} mode`,
    );
    const least = srcAvails === 'one' ? 1 : 0;
    expect(
      carried >= least && (least === 1 || carried === 0) && carried < advert.lengthBytes,
      () => `SrcAvail of ${advert.lengthBytes} bytes carries ${carried} in ${this.mode} mode`,
    );
    if (inline !== undefined) this.onData(inline);
    this.advertsSeen++;
    const { rkey, lengthBytes, address } = advert;
    const isRefused = zeroCopy.most === 'BUFFERED' || this.isDiscarding;
    this.incoming.push({
      ...{ isRefused, rkey, read: 0, address: address + BigInt(carried) },
      unposted: isRefused ? 0 : lengthBytes - carried,
    });
    this.answer();
  }

  /** Handles SrcAvailCancel. */
  onSrcCancel(): void {
    // SrcAvails that were read completely are answered already: nothing is left to cancel.
    if (this.incoming.length === 0) return;
    this.isCancelled = true;
    this.settle();
  }

  /** Handles the completion of the oldest read of `rdmaRead`. */
  onReadDone(): void {
    const reading = this.readings.shift();
    if (reading === undefined) return;
    const { area, from, bytes } = reading;
    from.read += bytes;
    this.answer();
    this.arrive({ bytes: area.bytes.subarray(0, bytes), release: () => area.release() });
    this.settle();
  }

  /** Handles RdmaWrCompl: the oldest SinkAvail was written to. */
  onWritten(bytes: number): void {
    const offer = this.offers.shift();
    expect(offer !== undefined, () => 'RdmaWrCompl, and no SinkAvail is outstanding');
    const { area, exposed } = offer;
    exposed.release();
    const most = area.bytes.length;
    if (bytes === 0 || bytes > most) area.release();
    expect(bytes > 0 && bytes <= most, () => `RdmaWrCompl of ${bytes} bytes: 1 to ${most}`);
    this.arrive({ bytes: area.bytes.subarray(0, bytes), release: () => area.release() });
    // The peer has no offer left to cancel, and does not answer.
    if (this.offers.length === 0) this.offerCancel = 'none';
  }

  /** Handles SinkCancelAck. */
  onOffersCancelled(): void {
    expect(this.offerCancel === 'sent', () => 'SinkCancelAck, and nothing was cancelled');
    this.offerCancel = 'none';
    this.takeOffersBack();
  }

  /** Handles a change of mode by the peer, which sends the data. */
  onModeChange(mode: Mode): void {
    const from = this.mode;
    expect(
      isModeChange('source', from, mode),
      () => `ModeChange of the source from ${from} to ${mode}`,
    );
    const left = this.incoming.length;
    expect(left === 0, () => `ModeChange to ${mode}, and ${left} SrcAvail are outstanding`);
    this.mode = mode;
    this.advertsSeen = 0;
    this.fullCopies = 0;
    if (!MODE_RULES[mode].sinkAvails) this.cancelOffers();
  }

  /** Handles DisConn. */
  onEnded(): void {
    const left = this.incoming.length;
    expect(left === 0, () => `DisConn, and ${left} SrcAvail are outstanding`);
    this.hasEnded = true;
    this.cancelOffers();
  }

  private arrive(arrived: Arrived): void {
    if (this.isDiscarding || arrived.bytes.length === 0) arrived.release();
    else this.ready.push(arrived);
  }

  /** Posts reads of the peer's offers, as far as there is memory for them. */
  private read(): boolean {
    const { host } = this.link;
    if (this.isCancelled || this.readings.length >= MOST_READS) return false;
    const from = this.incoming.find(({ unposted }) => unposted > 0);
    if (from === undefined || host.requestsFree <= REQUESTS_KEPT) return false;
    const area = host.takeArea();
    if (area === undefined) return false;
    const bytes = Math.min(area.bytes.length, from.unposted);
    const { rkey, address } = from;
    from.unposted -= bytes;
    from.address += BigInt(bytes);
    this.readings.push({ area, from, bytes });
    host.rdmaRead(area, bytes, { rkey, address });
    return true;
  }

  private changeMode(): boolean {
    const { zeroCopy } = this.link.config;
    if (this.mode !== 'BUFFERED' || this.hasEnded || zeroCopy.most === 'BUFFERED') return false;
    if (this.fullCopies < MODE_POLICY.copiesFromBuffered) return false;
    const body = { mid: 'MODE_CHANGE', mode: 'COMBINED', half: HALF_OF.sink } as const;
    if (!this.link.outbox.control(body)) return false;
    this.mode = 'COMBINED';
    this.fullCopies = 0;
    return true;
  }

  private offer(): boolean {
    const { host, outbox, config } = this.link;
    if (!config.zeroCopy.offersSink || !this.mayOffer || !outbox.may('control')) return false;
    const area = host.takeArea();
    if (area === undefined) return false;
    const exposed = area.expose();
    if (exposed === undefined) {
      area.release();
      this.cannotOffer = true;
      return false;
    }
    this.offers.push({ area, exposed });
    const { rkey, address } = exposed;
    const { dataMessages: nonDiscard } = this;
    const lengthBytes = area.bytes.length;
    outbox.send({ mid: 'SINK_AVAIL', lengthBytes, rkey, address, nonDiscard }, [], 0);
    return true;
  }

  private get mayOffer(): boolean {
    if (!MODE_RULES[this.mode].sinkAvails || this.cannotOffer) return false;
    if (this.hasEnded || this.isDiscarding || this.link.isEnding()) return false;
    if (this.offerCancel !== 'none') return false;
    const most = Math.min(MOST_OFFERS, this.link.config.peer.maxAdverts);
    return this.incoming.length === 0 && this.offers.length < most;
  }

  /** Answers each SrcAvail once, in order. */
  private answer(): void {
    for (let [head] = this.incoming; head !== undefined; [head] = this.incoming) {
      const { isRefused, unposted, read } = head;
      if (unposted > 0 || this.readings.some(({ from }) => from === head)) return;
      this.replies.push(isRefused ? { mid: 'SEND_SM' } : { mid: 'RDMA_RD_COMPL', bytes: read });
      this.incoming.shift();
    }
  }

  /**
   * Ends cancelled SrcAvails once no read of them is in flight. Each gets its own answer: the bytes
   * that were read of it, or SendSm.
   */
  private settle(): void {
    if (!this.isCancelled || this.readings.length > 0) return;
    this.isCancelled = false;
    for (const { read } of this.incoming.splice(0)) {
      this.replies.push(read > 0 ? { mid: 'RDMA_RD_COMPL', bytes: read } : { mid: 'SEND_SM' });
    }
  }

  /** Cancels the offers. The peer may write to them until it has acknowledged that. */
  private cancelOffers(): void {
    if (this.offers.length > 0 && this.offerCancel === 'none') this.offerCancel = 'wanted';
  }

  private takeBack({ area, exposed }: Offer): void {
    exposed.release();
    area.release();
  }

  private takeOffersBack(): void {
    for (const offer of this.offers.splice(0)) this.takeBack(offer);
  }
}
