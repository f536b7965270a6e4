import assert from 'node:assert/strict';
import { DatEventNumber, type Ep, type Ia, type Lmr } from '../../../../../core/index.js';
import {
  type Body,
  emitHead,
  emitHello,
  headBytes,
  MIDS,
  parseHelloAck,
  VERSION,
} from '../../../../../samples/ulp/sdp/wire/index.js';
import { pattern, PORT, Scene, SERVER } from './scene.js';

const SLOT = 1024;
const SLOTS = 16;
/** Messages that may be on their way at a time. */
const SENDS = 4;
const ADVERT = { lengthBytes: 64, rkey: 0x666, address: 0x1000n };

/** A peer that says what it likes, on an endpoint of DAT. */
class RawPeer {
  readonly heard: number[] = [];
  /** The connection has ended. */
  readonly ended: Promise<void>;
  private mseq = 1;
  private sent = 0;

  private constructor(
    private readonly ep: Ep,
    private readonly memory: Lmr,
    ended: Promise<void>,
  ) {
    this.ended = ended;
  }

  static async connect(ia: Ia): Promise<RawPeer> {
    const pz = ia.createPz();
    const memory = ia.allocate(SLOT * (SLOTS + SENDS), { pz });
    const ep = ia.createEndpoint({ pz });
    for (let slot = 0; slot < SLOTS; slot++) ep.postRecv(memory.segment(slot * SLOT, SLOT), slot);
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const peer = new RawPeer(ep, memory, ended);
    const open = new Promise<Uint8Array>((resolve) => {
      ep.connection$.subscribe((event) => {
        if (event.number === DatEventNumber.ESTABLISHED) resolve(event.privateData);
        else end();
      });
    });
    ep.completions$.subscribe((event) => {
      if (event.type !== 'dto' || event.transferredLength === 0 || event.cookie >= SLOTS) return;
      peer.heard.push(memory.bytes[event.cookie * SLOT] as number);
    });
    const hello = emitHello({
      ...{ bufs: SLOTS, version: VERSION, isIpv6: false, maxAdverts: 1, localPort: 9 },
      ...{ desiredRemoteBytes: SLOT, localBytes: SLOT },
      ...{ source: new Uint8Array(16), destination: new Uint8Array(16) },
    });
    ep.connect({ address: SERVER, serviceId: 0x1_0000n + BigInt(PORT), privateData: hello });
    parseHelloAck(await open);
    return peer;
  }

  say(
    body: Body,
    more: { flags?: number; bufs?: number; skip?: number; payload?: number } = {},
  ): void {
    const { flags = 0, bufs = SLOTS, skip = 0, payload = 0 } = more;
    const bytes = new Uint8Array(headBytes(body.mid) + payload);
    const mseq = this.mseq++ + skip;
    emitHead(bytes, body, { flags, bufs, mseq, mseqAck: 0 }, payload);
    this.babble(bytes);
  }

  /** Bytes that are no message. */
  babble(bytes: Uint8Array): void {
    const at = (SLOTS + (this.sent++ % SENDS)) * SLOT;
    this.memory.bytes.set(bytes, at);
    this.ep.postSend(this.memory.segment(at, bytes.length), SLOTS);
  }
}

/** What breaks the rules, and what the other side says of it. */
const BREACHES: Readonly<Record<string, readonly [(peer: RawPeer) => void, RegExp]>> = {
  'half a header': [(peer) => peer.babble(pattern(7)), /bytes of a message is 7/],
  'a kind that is none': [(peer) => peer.babble(pattern(20, 0x42)), /bsdh.mid is 66/],
  'a number out of order': [(peer) => peer.say({ mid: 'DATA' }, { skip: 5 }), /mseq is 7: 2 is/],
  'an urgent byte without a byte': [(peer) => peer.say({ mid: 'DATA' }, { flags: 1 }), /OOB_PRES/],
  'SendSm for nothing': [(peer) => peer.say({ mid: 'SEND_SM' }), /SendSm, and no SrcAvail/],
  'RdmaRdCompl of nothing': [(peer) => peer.say({ mid: 'RDMA_RD_COMPL', bytes: 9 }), /no SrcAvail/],
  'RdmaWrCompl of nothing': [
    (peer) => peer.say({ mid: 'RDMA_WR_COMPL', bytes: 9 }),
    /no SinkAvail/,
  ],
  'SinkCancelAck for nothing': [(peer) => peer.say({ mid: 'SINK_CANCEL_ACK' }), /nothing was canc/],
  'ChRcvBufAck for nothing': [
    (peer) => peer.say({ mid: 'CH_RCV_BUF_ACK', bytes: 9 }),
    /nothing was/,
  ],
  'ChRcvBuf of nothing': [(peer) => peer.say({ mid: 'CH_RCV_BUF', bytes: 0 }), /ChRcvBuf of 0/],
  'a mode that only the other side may leave for': [
    (peer) => peer.say({ mid: 'MODE_CHANGE', mode: 'PIPELINED', half: 'SEND' }),
    /ModeChange of the sink from COMBINED to PIPELINED/,
  ],
  'SrcAvail without a byte in combined mode': [
    (peer) => peer.say({ mid: 'SRC_AVAIL', ...ADVERT }),
    /SrcAvail of 64 bytes carries 0 in COMBINED mode/,
  ],
  'SinkAvail in combined mode': [
    (peer) => peer.say({ mid: 'SINK_AVAIL', ...ADVERT, nonDiscard: 0 }),
    /SinkAvail in COMBINED mode/,
  ],
  'data while a SrcAvail is outstanding': [
    (peer) => {
      peer.say({ mid: 'MODE_CHANGE', mode: 'PIPELINED', half: 'RECV' });
      peer.say({ mid: 'SRC_AVAIL', ...ADVERT });
      peer.say({ mid: 'DATA' }, { payload: 4 });
    },
    /Data, and a SrcAvail before it is outstanding|ECONNRESET/,
  ],
  'data after DisConn': [
    (peer) => {
      peer.say({ mid: 'DIS_CONN' });
      peer.say({ mid: 'DATA' }, { payload: 4 });
    },
    /DATA after DisConn/,
  ],
  'another service': [(peer) => peer.say({ mid: 'SUSP_COMM', serviceId: 1n }), /SUSP_COMM: conn/],
  'memory that is not there': [
    (peer) => peer.say({ mid: 'SRC_AVAIL', ...ADVERT }, { payload: 8 }),
    /ECONNRESET/,
  ],
};

describe('sdp: a hostile peer, over the simulated fabric', () => {
  let scene: Scene;
  afterEach(() => scene.close());

  for (const [name, [act, said]] of Object.entries(BREACHES)) {
    it(`${name}: ends that connection by its error, and nothing else`, async () => {
      scene = await Scene.make();
      const [near, far] = await scene.pair();
      const peer = await RawPeer.connect(scene.here);
      peer.say({ mid: 'DATA' }, { payload: 1 });
      const victim = await scene.accept();
      await victim.got(1);
      act(peer);
      const error = await victim.closed;
      assert.match(error?.message ?? '', said);
      await peer.ended;
      // Behind a read that the peer's device refuses, no AbortConn gets there.
      const isDevices = said.source.includes('ECONNRESET');
      if (!isDevices) assert.equal(peer.heard.at(-1), MIDS.ABORT_CONN.number);
      await near.write(pattern(1000));
      await far.got(1000);
    });
  }
});
