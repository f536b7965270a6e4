/** The second model of SDP finds each breach of its rules, and nothing in what keeps them. */
import assert from 'node:assert/strict';
import { FLAG, MID } from './sdp-model/frame.js';
import { type Name, MODE, SdpModel } from './sdp-model/model.js';

const BUFFER_BYTES = 1000;
const RECEIVES = 8;
const VERSION = 0x22;
const MEMORY = 0x10_0000n;
const KEY = 77;

interface Fields {
  flags?: number;
  bufs?: number;
  mseq?: number;
  mseqAck?: number;
  payload?: number;
  words?: readonly number[];
  at?: bigint;
}

/** Two sides that keep the rules, unless told otherwise. */
class Talk {
  readonly model = new SdpModel();
  private readonly next = { A: 0, B: 0 };
  private readonly seen = { A: 0, B: 0 };
  private readonly posted = { A: 0, B: 0 };

  constructor(hello: { version?: number; adverts?: number } = {}) {
    this.post('A', RECEIVES);
    this.post('B', RECEIVES);
    const { version = VERSION, adverts = 1 } = hello;
    this.say('A', this.first(MID.HELLO, 92, VERSION, 1));
    this.say('B', this.first(MID.HELLO_ACK, 196, version, adverts));
  }

  post(name: Name, count: number): void {
    this.posted[name] += count;
    this.model.observe(name, { kind: 'receivesPosted', count });
  }

  first(mid: number, bytes: number, version: number, adverts: number): Uint8Array {
    const message = new Uint8Array(bytes);
    const view = new DataView(message.buffer);
    message[16] = version;
    message[17] = 0x40;
    message[19] = adverts;
    view.setUint32(mid === MID.HELLO ? 24 : 20, BUFFER_BYTES);
    view.setUint16(2, RECEIVES);
    view.setUint32(4, bytes);
    message[0] = mid;
    return message;
  }

  /** The bytes of a side's next message. */
  bytes(name: Name, mid: number, fields: Fields = {}): Uint8Array {
    const { flags = 0, payload = 0, words = [], at } = fields;
    const extra = words.length * 4 + (at === undefined ? 0 : 8);
    const message = new Uint8Array(16 + extra + payload);
    const view = new DataView(message.buffer);
    message[0] = mid;
    message[1] = flags;
    view.setUint16(2, fields.bufs ?? this.posted[name]);
    view.setUint32(4, message.length);
    view.setUint32(8, fields.mseq ?? this.next[name]);
    view.setUint32(12, fields.mseqAck ?? this.seen[name]);
    words.slice(0, 2).forEach((value, index) => view.setUint32(16 + 4 * index, value));
    if (at !== undefined) view.setBigUint64(24, at);
    words.slice(2).forEach((value, index) => view.setUint32(32 + 4 * index, value));
    return message;
  }

  /** A message that leaves; what it is to be arrives with `arrive`. */
  send(name: Name, message: Uint8Array): Uint8Array {
    this.model.observe(name, { kind: 'sent', message });
    this.next[name] += 1;
    return message;
  }

  arrive(name: Name, message: Uint8Array): void {
    this.model.observe(name, { kind: 'arrived', message });
    this.seen[name] = new DataView(message.buffer).getUint32(8);
    if (this.seen[name] > 0) this.posted[name] -= 1;
  }

  /** Sent, and arrived; the receive is posted again. */
  say(name: Name, message: Uint8Array): void {
    const peer = name === 'A' ? 'B' : 'A';
    this.arrive(peer, this.send(name, message));
    if (this.seen[peer] > 0) this.post(peer, 1);
  }

  tell(name: Name, mid: number, fields: Fields = {}): void {
    this.say(name, this.bytes(name, mid, fields));
  }

  rdma(name: Name, kind: 'rdmaRead' | 'rdmaWrite', from: number, length: number): void {
    const remoteAddress = MEMORY + BigInt(from);
    this.model.observe(name, { kind, remoteAddress, rkey: KEY, length });
  }

  offer(name: Name, inline: number, length = 5000): void {
    this.tell(name, MID.SRC_AVAIL, { payload: inline, words: [length, KEY], at: MEMORY });
  }

  sink(name: Name, length = 5000): void {
    this.tell(name, MID.SINK_AVAIL, { words: [length, KEY, 0], at: MEMORY });
  }

  mode(name: Name, mode: number, half = 0): void {
    this.tell(name, MID.MODE_CHANGE, { words: [((mode << 28) | (half << 31)) >>> 0] });
  }

  /** B's bytes may be written by RDMA into A. */
  pipelined(): this {
    this.mode('B', MODE.PIPELINED);
    return this;
  }

  number(name: Name, mid: number, value: number): void {
    this.tell(name, mid, { words: [value] });
  }

  end(): void {
    this.tell('A', MID.DISCONN);
    this.tell('B', MID.DISCONN);
    this.model.finish();
  }
}

describe('sdp: the second model', () => {
  it('has nothing to say of messages in all modes that keep the rules', () => {
    const talk = new Talk();
    for (let i = 0; i < 20; i++) {
      talk.tell('A', MID.DATA, { payload: 100 });
      // A message without payload only gives credits.
      if (i % 4 === 3) talk.tell('B', MID.DATA);
    }
    talk.tell('B', MID.DATA, { payload: 1, flags: FLAG.OOB_PRES | FLAG.OOB_PEND });
    talk.offer('A', 10);
    talk.rdma('B', 'rdmaRead', 10, 4000);
    talk.rdma('B', 'rdmaRead', 4010, 990);
    talk.number('B', MID.RDMA_RD_COMPL, 4990);
    talk.offer('B', 1);
    talk.tell('A', MID.SEND_SM);
    talk.offer('B', 1);
    talk.tell('B', MID.SRC_AVAIL_CANCEL);
    talk.rdma('A', 'rdmaRead', 1, 9);
    talk.number('A', MID.RDMA_RD_COMPL, 9);
    talk.pipelined();
    talk.sink('A');
    talk.rdma('B', 'rdmaWrite', 0, 3000);
    talk.number('B', MID.RDMA_WR_COMPL, 3000);
    talk.sink('A');
    talk.tell('A', MID.SINK_AVAIL_CANCEL);
    talk.tell('B', MID.SINK_CANCEL_ACK);
    talk.number('A', MID.CH_RCV_BUF, 2000);
    talk.number('B', MID.CH_RCV_BUF_ACK, 1500);
    talk.tell('A', MID.DATA, { payload: 1484 });
    talk.end();
    assert.deepEqual(talk.model.violations, []);
    assert.equal(talk.model.streamBytes('A'), 20 * 100 + 5000 + 1484);
    assert.equal(talk.model.streamBytes('B'), 1 + 1 + 1 + 9 + 3000);
  });

  it('lets a cancel cross what settles its advertisement', () => {
    const talk = new Talk();
    talk.offer('A', 1);
    talk.rdma('B', 'rdmaRead', 1, 4999);
    const settled = talk.send('B', talk.bytes('B', MID.RDMA_RD_COMPL, { words: [4999] }));
    talk.tell('A', MID.SRC_AVAIL_CANCEL);
    talk.arrive('A', settled);
    talk.post('A', 1);
    talk.end();
    assert.deepEqual(talk.model.violations, []);
  });

  it('lets messages of the old size cross the answer that makes buffers smaller', () => {
    const talk = new Talk();
    talk.number('A', MID.CH_RCV_BUF, 500);
    const answer = talk.send('B', talk.bytes('B', MID.CH_RCV_BUF_ACK, { words: [500] }));
    talk.tell('A', MID.DATA, { payload: 900 });
    talk.arrive('A', answer);
    assert.deepEqual(talk.model.violations, []);
    talk.tell('A', MID.DATA, { payload: 900 });
    assert.match(talk.model.violations.join(), /916 bytes for buffers of 500/);
  });

  const drain = (talk: Talk, count: number): void => {
    for (let i = 0; i < count; i++) {
      talk.arrive('B', talk.send('A', talk.bytes('A', MID.DATA, { payload: 1 })));
    }
  };

  const BREACHES: readonly (readonly [string, (talk: Talk) => void, RegExp])[] = [
    ['a number left out', (t) => t.tell('A', MID.DATA, { mseq: 2 }), /number 2, where 1 is next/],
    ['an ACK of what has not come', (t) => t.tell('A', MID.DATA, { mseqAck: 5 }), /0 was the last/],
    ['receives that are not there', (t) => t.tell('A', MID.DATA, { bufs: 9 }), /9 receives, 8 are/],
    [
      'a message too long',
      (t) => t.tell('A', MID.DATA, { payload: 985 }),
      /1001 bytes for buffers/,
    ],
    ['data with two credits', (t) => drain(t, 7), /Data with 2 credits of 3/],
    [
      'control with one credit',
      (t) => {
        drain(t, 7);
        t.send('A', t.bytes('A', MID.DISCONN));
      },
      /DisConn with 1 credits of 2/,
    ],
    ['no receive', (t) => drain(t, 9), /has found no receive posted/],
    ['a flag that is none', (t) => t.tell('A', MID.DATA, { flags: 8 }), /flags 0x8/],
    ['a message that is none', (t) => t.tell('A', 0x0d, { words: [1] }), /0xd is not known/],
    [
      'an urgent byte unannounced',
      (t) => t.tell('A', MID.DATA, { payload: 1, flags: FLAG.OOB_PRES }),
      /without OOB_PEND/,
    ],
    ['an urgent byte of none', (t) => t.tell('A', MID.DATA, { flags: 3 }), /without a byte/],
    ['a second Hello', (t) => t.say('A', t.first(MID.HELLO, 92, VERSION, 1)), /a second Hello/],
    [
      'data after the end of the stream',
      (t) => {
        t.tell('A', MID.DISCONN);
        t.tell('A', MID.DATA, { payload: 1 });
      },
      /Data after DisConn/,
    ],
    [
      'words after an abort',
      (t) => {
        t.tell('A', MID.ABORT);
        t.tell('A', MID.DATA);
      },
      /after its AbortConn/,
    ],
    [
      'an answer to an abort',
      (t) => {
        t.tell('A', MID.ABORT);
        t.tell('B', MID.DATA);
      },
      /after the peer's AbortConn/,
    ],
    ['an offer without a byte', (t) => t.offer('A', 0), /without a byte in combined mode/],
    ['an offer of nothing', (t) => t.offer('A', 10, 10), /which all came with it/],
    [
      'an offer in buffered mode',
      (t) => {
        t.mode('A', MODE.BUFFERED);
        t.offer('A', 1);
      },
      /SrcAvail in buffered mode/,
    ],
    [
      'more offers than allowed',
      (t) => {
        t.offer('A', 1);
        t.offer('A', 1);
      },
      /2 SrcAvail outstanding of 1/,
    ],
    [
      'an end with an offer outstanding',
      (t) => {
        t.offer('A', 1);
        t.tell('A', MID.DISCONN);
      },
      /DisConn with 1 SrcAvail/,
    ],
    [
      'a read of what came already',
      (t) => {
        t.offer('A', 10);
        t.rdma('B', 'rdmaRead', 0, 20);
      },
      /that came with the message/,
    ],
    [
      'a read beyond the offer',
      (t) => {
        t.offer('A', 10);
        t.rdma('B', 'rdmaRead', 4000, 1001);
      },
      /where nothing is offered/,
    ],
    [
      'fewer bytes than offered',
      (t) => {
        t.offer('A', 1);
        t.rdma('B', 'rdmaRead', 1, 10);
        t.number('B', MID.RDMA_RD_COMPL, 10);
      },
      /of 10 bytes, 4999 were offered/,
    ],
    [
      'bytes that were not read',
      (t) => {
        t.offer('A', 1);
        t.number('B', MID.RDMA_RD_COMPL, 4999);
      },
      /4999 bytes, 0 were read/,
    ],
    ['a completion of no offer', (t) => t.number('B', MID.RDMA_RD_COMPL, 1), /for no SrcAvail/],
    ['a refusal of no offer', (t) => t.tell('B', MID.SEND_SM), /SendSm for no SrcAvail/],
    [
      'a refusal after a read',
      (t) => {
        t.offer('A', 1);
        t.rdma('B', 'rdmaRead', 1, 10);
        t.tell('B', MID.SEND_SM);
      },
      /after 10 bytes were read/,
    ],
    [
      'two cancels',
      (t) => {
        t.offer('A', 1);
        t.tell('A', MID.SRC_AVAIL_CANCEL);
        t.tell('A', MID.SRC_AVAIL_CANCEL);
      },
      /a second SrcAvailCancel/,
    ],
    ['a sink in combined mode', (t) => t.sink('A'), /SinkAvail in combined mode/],
    [
      'a write beyond the sink',
      (t) => {
        t.pipelined().sink('A');
        t.rdma('B', 'rdmaWrite', 4000, 2000);
      },
      /where nothing is offered/,
    ],
    [
      'bytes that were not written',
      (t) => {
        t.pipelined().sink('A');
        t.number('B', MID.RDMA_WR_COMPL, 5);
      },
      /5 bytes, 0 written/,
    ],
    ['a completion of no sink', (t) => t.number('B', MID.RDMA_WR_COMPL, 5), /for no SinkAvail/],
    ['an answer to no cancel', (t) => t.tell('B', MID.SINK_CANCEL_ACK), /no SinkAvailCancel/],
    ['a mode that is none', (t) => t.mode('A', 3), /to mode 3/],
    ['the mode that it is', (t) => t.mode('A', MODE.COMBINED), /combined, which it is/],
    [
      'another mode with an offer outstanding',
      (t) => {
        t.offer('A', 1);
        t.mode('A', MODE.PIPELINED);
      },
      /advertisements of its own outstanding/,
    ],
    ['an answer to no ChRcvBuf', (t) => t.number('B', MID.CH_RCV_BUF_ACK, 9), /for no ChRcvBuf/],
    [
      'two questions for a size',
      (t) => {
        t.number('A', MID.CH_RCV_BUF, 9);
        t.number('A', MID.CH_RCV_BUF, 9);
      },
      /a second ChRcvBuf/,
    ],
    ['an end without DisConn', (t) => t.model.finish(), /ends without DisConn/],
    [
      'a word after the end',
      (t) => {
        t.model.observe('A', { kind: 'killed' });
        t.tell('A', MID.DATA);
      },
      /Data after its end/,
    ],
  ];
  for (const [what, breach, found] of BREACHES) {
    it(`finds ${what}`, () => {
      const talk = new Talk();
      breach(talk);
      assert.match(talk.model.violations.join('\n'), found);
    });
  }

  it('finds an answer in another version, and one that allows no advertisement', () => {
    assert.match(new Talk({ version: 0x11 }).model.violations.join(), /version 2 with 1/);
    assert.match(new Talk({ adverts: 0 }).model.violations.join(), /allows no advertisement/);
  });
});
