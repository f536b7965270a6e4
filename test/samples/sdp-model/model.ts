/**
 * A second model of SDP's rules, to judge what two sides say to each other: written from the facts
 * of the protocol alone, by another hand than the sample's. It is told what each side sends, what
 * arrives, which receives are posted and which bytes move by RDMA, and notes each breach of a rule.
 */
import { address, BSDH_BYTES, FLAG, type Frame, frameOf, MID, word } from './frame.js';

export type Name = 'A' | 'B';

/** A is the side that connects. Each event is of the side that it is observed at. */
export type SdpEvent =
  | { readonly kind: 'receivesPosted'; readonly count: number }
  | { readonly kind: 'sent' | 'arrived'; readonly message: Uint8Array }
  | RdmaEvent
  | { readonly kind: 'disconnected' | 'killed' };

interface RdmaEvent {
  readonly kind: 'rdmaRead' | 'rdmaWrite';
  readonly remoteAddress: bigint;
  readonly rkey: number;
  readonly length: number;
}

export const MODE = { BUFFERED: 0, COMBINED: 1, PIPELINED: 2 } as const;
const MODE_NAMES = ['buffered', 'combined', 'pipelined'];

/** Memory that one side has told the other of, until that is settled. */
interface Advert {
  readonly address: bigint;
  readonly rkey: number;
  readonly length: number;
  /** Bytes that came with the message itself. */
  readonly inline: number;
  /** Bytes that RDMA has moved. */
  moved: number;
  isCancelled: boolean;
}

/** A message ends what has this many credits left behind it. */
const DATA_CREDITS = 3;
const CONTROL_CREDITS = 2;
const MAJOR = 4;
const HELLO_BYTES = { [MID.HELLO]: [92, 76], [MID.HELLO_ACK]: [196, 180] };

class Side {
  /** Receives posted in all, and messages that have arrived. */
  posted = 0;
  arrived = 0;
  /** The number that its next message has. */
  nextMseq = 0;
  /** Of the last message that has arrived here. */
  lastMseq = -1;
  /** What the last message of the peer that has arrived here said. */
  peerBufs = 0;
  peerAck = 0;
  /** A message to this side may be so long: what the peer knows of it. */
  bufferBytes = 0;
  maxAdverts = 0;
  version = 0;
  acked = 0;
  /** Of the bytes that this side sends, and of those that it gets, as far as it knows. */
  sends: number = MODE.COMBINED;
  gets: number = MODE.COMBINED;
  /** Told of by this side, in order: to be read by the peer, to be written by it. */
  readonly sources: Advert[] = [];
  readonly sinks: Advert[] = [];
  asksBuffer = false;
  hasDisconnected = false;
  hasAborted = false;
  heardAbort = false;
  isGone = false;
  /** Bytes of its stream that have been handed over, in whichever way. */
  streamBytes = 0;

  constructor(readonly name: Name) {}

  /** How many messages more the peer has receives for, as far as this side can know. */
  get credits(): number {
    return this.peerBufs - (this.nextMseq - 1 - this.peerAck);
  }
}

/** What a rule looks at. */
interface Case {
  readonly from: Side;
  readonly to: Side;
  readonly frame: Frame;
}

export class SdpModel {
  readonly violations: string[] = [];
  private readonly a = new Side('A');
  private readonly b = new Side('B');

  observe(name: Name, event: SdpEvent): void {
    const [side, peer] = name === 'A' ? [this.a, this.b] : [this.b, this.a];
    switch (event.kind) {
      case 'receivesPosted':
        side.posted += event.count;
        return;
      case 'sent':
        this.onMessage(event.message, (frame) => this.onSent({ from: side, to: peer, frame }));
        return;
      case 'arrived':
        this.onMessage(event.message, (frame) => this.onArrived({ from: peer, to: side, frame }));
        return;
      case 'rdmaRead':
        this.onRdma(side, peer.sources, event);
        return;
      case 'rdmaWrite':
        this.onRdma(side, peer.sinks, event);
        return;
      case 'disconnected':
      case 'killed':
        side.isGone = true;
    }
  }

  /** Bytes of the stream that a side has handed over: payload, and what RDMA was completed for. */
  streamBytes(name: Name): number {
    return name === 'A' ? this.a.streamBytes : this.b.streamBytes;
  }

  /** After an orderly end nothing may be left that a side waits for. */
  finish(): void {
    for (const side of [this.a, this.b]) {
      if (side.sources.length > 0) this.note(side, `${side.sources.length} SrcAvail at the end`);
      if (side.sinks.length > 0) this.note(side, `${side.sinks.length} SinkAvail at the end`);
      if (side.asksBuffer) this.note(side, 'ChRcvBuf without an answer at the end');
      if (!side.hasDisconnected) this.note(side, 'ends without DisConn');
    }
  }

  private note(side: Side, what: string): void {
    this.violations.push(`${side.name}: ${what}`);
  }

  private onMessage(bytes: Uint8Array, take: (frame: Frame) => void): void {
    const frame = frameOf(bytes);
    if (typeof frame === 'string') this.violations.push(frame);
    else take(frame);
  }

  // --- a message leaves --------------------------------------------------------------------------

  private onSent(sent: Case): void {
    const { from, frame } = sent;
    if (from.isGone) this.note(from, `${frame.name} after its end`);
    if (from.hasAborted) this.note(from, `${frame.name} after its AbortConn`);
    if (from.heardAbort) this.note(from, `${frame.name} after the peer's AbortConn`);
    this.checkNumbers(sent);
    if (from.nextMseq === 0) this.onFirst(sent);
    else this.onLater(sent);
    from.nextMseq += 1;
  }

  /**
   * Each message has the next number, and acknowledges what has arrived, never less than before.
   */
  private checkNumbers({ from, frame }: Case): void {
    const { name, mseq, mseqAck, bufs } = frame;
    if (mseq !== from.nextMseq) {
      this.note(from, `${name} has number ${mseq}, where ${from.nextMseq} is next`);
    }
    const last = Math.max(0, from.lastMseq);
    if (mseqAck > last) this.note(from, `${name} acknowledges ${mseqAck}, ${last} was the last`);
    if (mseqAck < from.acked) this.note(from, `${name} acknowledges less than before`);
    from.acked = mseqAck;
    const posted = from.posted - from.arrived;
    if (bufs > posted) this.note(from, `${name} tells of ${bufs} receives, ${posted} are posted`);
  }

  private onFirst({ from, to, frame }: Case): void {
    const expected = from.name === 'A' ? MID.HELLO : MID.HELLO_ACK;
    if (frame.mid !== expected) {
      this.note(from, `begins with ${frame.name}`);
      return;
    }
    if (from.name === 'B' && from.lastMseq < 0) this.note(from, 'HelloAck before Hello');
    const { view } = frame;
    if (!HELLO_BYTES[expected].includes(frame.bytes)) {
      this.note(from, `${frame.name} of ${frame.bytes} bytes`);
    }
    from.version = view.getUint8(16) >> MAJOR;
    from.maxAdverts = view.getUint8(19);
    if (from.maxAdverts === 0) this.note(from, `${frame.name} allows no advertisement`);
    const isHello = expected === MID.HELLO;
    // Hello asks for a size of the peer, and then says its own; HelloAck says its own.
    from.bufferBytes = view.getUint32(isHello ? 24 : 20);
    if (!isHello && from.version !== to.version) {
      this.note(from, `answers version ${to.version} with ${from.version}`);
    }
  }

  private onLater(sent: Case): void {
    const { from, to, frame } = sent;
    if (frame.mid === MID.HELLO || frame.mid === MID.HELLO_ACK) {
      this.note(from, `a second ${frame.name}`);
      return;
    }
    if (from.lastMseq < 0) this.note(from, `${frame.name} before the peer's Hello or HelloAck`);
    if (frame.bytes > to.bufferBytes) {
      this.note(from, `${frame.name} of ${frame.bytes} bytes for buffers of ${to.bufferBytes}`);
    }
    this.checkCredits(sent);
    this.checkUrgent(sent);
    RULES[frame.mid]?.(sent, (what) => this.note(from, what));
  }

  /** Two credits are kept back: one for control messages, one for a message that gives credits. */
  private checkCredits({ from, frame }: Case): void {
    const { credits } = from;
    const isEmptyData = frame.mid === MID.DATA && frame.payloadBytes === 0;
    const needed = isEmptyData ? 1 : frame.payloadBytes > 0 ? DATA_CREDITS : CONTROL_CREDITS;
    if (credits < needed) this.note(from, `${frame.name} with ${credits} credits of ${needed}`);
  }

  private checkUrgent({ from, frame }: Case): void {
    if ((frame.flags & FLAG.OOB_PRES) === 0) return;
    if ((frame.flags & FLAG.OOB_PEND) === 0) this.note(from, 'OOB_PRES without OOB_PEND');
    if (frame.payloadBytes === 0) this.note(from, `${frame.name}: an urgent byte without a byte`);
  }

  // --- a message arrives -------------------------------------------------------------------------

  private onArrived({ from, to, frame }: Case): void {
    const { name, mseq } = frame;
    if (mseq !== to.lastMseq + 1) {
      this.note(to, `gets ${name} ${mseq} behind ${to.lastMseq}`);
    }
    to.lastMseq = mseq;
    // Hello and HelloAck come in messages of the CM.
    if (mseq > 0) {
      to.arrived += 1;
      if (to.arrived > to.posted) this.note(from, `${name} has found no receive posted`);
    }
    to.peerBufs = frame.bufs;
    to.peerAck = frame.mseqAck;
    ARRIVALS[frame.mid]?.({ from, to, frame });
  }

  // --- bytes move by RDMA ------------------------------------------------------------------------

  private onRdma(by: Side, adverts: readonly Advert[], event: RdmaEvent): void {
    const { kind, rkey, remoteAddress, length } = event;
    const end = remoteAddress + BigInt(length);
    const advert = adverts.find(
      (each) =>
        each.rkey === rkey &&
        remoteAddress >= each.address &&
        end <= each.address + BigInt(each.length),
    );
    if (advert === undefined) {
      this.note(by, `${kind} of ${length} bytes where nothing is offered`);
      return;
    }
    const first = advert.address + BigInt(kind === 'rdmaRead' ? advert.inline : 0);
    if (remoteAddress < first) this.note(by, `${kind} of bytes that came with the message`);
    advert.moved += length;
  }
}

type Note = (what: string) => void;

/** What else a message must fulfil when it leaves, and what it changes. */
const RULES: Readonly<Record<number, (sent: Case, note: Note) => void>> = {
  [MID.DATA]: ({ from, frame }, note) => {
    if (frame.payloadBytes === 0) return;
    if (from.hasDisconnected) note('Data after DisConn');
    from.streamBytes += frame.payloadBytes;
  },
  [MID.DISCONN]: ({ from }, note) => {
    if (from.hasDisconnected) note('a second DisConn');
    if (from.sources.length > 0) note(`DisConn with ${from.sources.length} SrcAvail outstanding`);
    from.hasDisconnected = true;
  },
  [MID.ABORT]: ({ from, to }) => {
    from.hasAborted = true;
    from.sources.length = from.sinks.length = to.sources.length = to.sinks.length = 0;
  },
  [MID.SRC_AVAIL]: ({ from, to, frame }, note) => {
    if (from.hasDisconnected) note('SrcAvail after DisConn');
    if (from.sends === MODE.BUFFERED) note('SrcAvail in buffered mode');
    if (from.sends === MODE.COMBINED && frame.payloadBytes === 0) {
      note('SrcAvail without a byte in combined mode');
    }
    const length = word(frame, 0);
    if (length <= frame.payloadBytes) note(`SrcAvail of ${length} bytes, which all came with it`);
    if (from.sources.length >= to.maxAdverts) {
      note(`${from.sources.length + 1} SrcAvail outstanding of ${to.maxAdverts}`);
    }
    from.streamBytes += frame.payloadBytes;
    from.sources.push(advertOf(frame, frame.payloadBytes));
  },
  [MID.RDMA_RD_COMPL]: ({ to, frame }, note) => {
    const advert = to.sources.shift();
    if (advert === undefined) {
      note('RdmaRdCompl for no SrcAvail');
      return;
    }
    const bytes = word(frame, 0);
    const rest = advert.length - advert.inline;
    if (bytes !== advert.moved) note(`RdmaRdCompl of ${bytes} bytes, ${advert.moved} were read`);
    if (bytes < rest && !advert.isCancelled) {
      note(`RdmaRdCompl of ${bytes} bytes, ${rest} were offered`);
    }
    to.streamBytes += bytes;
  },
  [MID.SEND_SM]: ({ to }, note) => {
    const advert = to.sources.shift();
    if (advert === undefined) note('SendSm for no SrcAvail');
    else if (advert.moved > 0) note(`SendSm after ${advert.moved} bytes were read`);
  },
  [MID.SRC_AVAIL_CANCEL]: ({ from }, note) => cancel('SrcAvailCancel', from.sources, note),
  [MID.SINK_AVAIL]: ({ from, to, frame }, note) => {
    if (from.gets !== MODE.PIPELINED) note(`SinkAvail in ${MODE_NAMES[from.gets]} mode`);
    if (word(frame, 0) === 0) note('SinkAvail of no byte');
    if (from.sinks.length >= to.maxAdverts) {
      note(`${from.sinks.length + 1} SinkAvail outstanding of ${to.maxAdverts}`);
    }
    if (from.hasDisconnected && frame.payloadBytes > 0) note('Data after DisConn');
    from.streamBytes += frame.payloadBytes;
    from.sinks.push(advertOf(frame, 0));
  },
  [MID.RDMA_WR_COMPL]: ({ from, to, frame }, note) => {
    const advert = to.sinks.shift();
    if (advert === undefined) {
      note('RdmaWrCompl for no SinkAvail');
      return;
    }
    const bytes = word(frame, 0);
    if (bytes !== advert.moved) note(`RdmaWrCompl of ${bytes} bytes, ${advert.moved} written`);
    if (from.hasDisconnected) note('RdmaWrCompl after DisConn');
    from.streamBytes += bytes;
  },
  [MID.SINK_AVAIL_CANCEL]: ({ from }, note) => cancel('SinkAvailCancel', from.sinks, note),
  [MID.SINK_CANCEL_ACK]: ({ to }, note) => {
    const cancelled = to.sinks.filter((advert) => advert.isCancelled);
    if (cancelled.length === 0) note('SinkCancelAck for no SinkAvailCancel');
    if (cancelled.some((advert) => advert.moved > 0))
      note('SinkCancelAck after bytes were written');
    const rest = to.sinks.filter((advert) => !advert.isCancelled);
    to.sinks.splice(0, to.sinks.length, ...rest);
  },
  [MID.MODE_CHANGE]: ({ from, frame }, note) => {
    const { mode, half, isClean } = modeOf(frame);
    if (!isClean) note('ModeChange with reserved bits');
    if (MODE_NAMES[mode] === undefined) note(`ModeChange to mode ${mode}`);
    if (from[half] === mode) note(`ModeChange to ${MODE_NAMES[mode]}, which it is`);
    const adverts = half === 'sends' ? from.sources : from.sinks;
    if (adverts.length > 0) note('ModeChange with advertisements of its own outstanding');
    from[half] = mode;
  },
  [MID.CH_RCV_BUF]: ({ from, frame }, note) => {
    if (from.asksBuffer) note('a second ChRcvBuf before the answer');
    if (word(frame, 0) === 0) note('ChRcvBuf of no byte');
    from.asksBuffer = true;
  },
  [MID.CH_RCV_BUF_ACK]: ({ to, frame }, note) => {
    if (!to.asksBuffer) note('ChRcvBufAck for no ChRcvBuf');
    if (word(frame, 0) === 0) note('ChRcvBufAck of no byte');
    to.asksBuffer = false;
  },
};

/** What changes for a side when a message arrives there, and not before. */
const ARRIVALS: Readonly<Record<number, (arrived: Case) => void>> = {
  [MID.ABORT]: ({ to }) => {
    to.heardAbort = true;
  },
  [MID.MODE_CHANGE]: ({ to, frame }) => {
    const { mode, half } = modeOf(frame);
    to[half === 'sends' ? 'gets' : 'sends'] = mode;
  },
  // Longer messages may have been under way while the answer was.
  [MID.CH_RCV_BUF_ACK]: ({ from, frame }) => {
    from.bufferBytes = word(frame, 0);
  },
};

/** Which half it is of, as the side calls it that sends the message. */
function modeOf(frame: Frame): { mode: number; half: 'sends' | 'gets'; isClean: boolean } {
  const octet = frame.view.getUint8(BSDH_BYTES);
  const isClean = (octet & 0x0f) === 0 && (word(frame, 0) & 0xffffff) === 0;
  return { mode: (octet >> 4) & 7, half: (octet & 0x80) === 0 ? 'sends' : 'gets', isClean };
}

function cancel(name: string, adverts: readonly Advert[], note: Note): void {
  const open = adverts.filter((advert) => !advert.isCancelled);
  if (adverts.length > 0 && open.length === 0) note(`a second ${name}`);
  // With none left, it has crossed what settles the last one.
  for (const advert of open) advert.isCancelled = true;
}

function advertOf(frame: Frame, inline: number): Advert {
  const [length, rkey] = [word(frame, 0), word(frame, 4)];
  return { address: address(frame, 8), rkey, length, inline, moved: 0, isCancelled: false };
}
