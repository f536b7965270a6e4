/** RC responder: what atomics do to memory, and what they are answered with (IBTA 9.4.5). */
import assert from 'node:assert/strict';
import { QpState } from '../../../core/spi/index.js';
import { drain, postReceive } from '../../support/hca-pair.js';
import {
  MTU,
  OPCODE,
  ResponderScene,
  SYNDROME,
  aeth,
  wide,
} from '../../support/responder-scene.js';

/** Where the word is; on both sides of it there are bytes that must stay. */
const AT = 4096;
const AROUND = 0xee;
const MASK = (1n << 64n) - 1n;

class Atomics extends ResponderScene {
  private readonly view: DataView;

  constructor() {
    super();
    const { bytes } = this.pair.b;
    bytes.fill(AROUND);
    this.view = new DataView(bytes.buffer);
  }

  /** Little-endian, as its owner computes with it. */
  get word(): bigint {
    return this.view.getBigUint64(AT, true);
  }

  set word(value: bigint) {
    this.view.setBigUint64(AT, value, true);
  }

  fetchAdd(ahead: number, addend: bigint, offset = AT): Uint8Array {
    const operands = [...wide(addend), ...wide(0n)];
    return this.request(OPCODE.FETCH_ADD, ahead, [...this.place(offset), ...operands]);
  }

  compareSwap(ahead: number, compare: bigint, swap: bigint, offset = AT): Uint8Array {
    const operands = [...wide(swap), ...wide(compare)];
    return this.request(OPCODE.COMPARE_SWAP, ahead, [...this.place(offset), ...operands]);
  }

  /** Longer than what is moved at once. */
  write(ahead: number, value: bigint): Uint8Array {
    const around = new Array<number>(8).fill(AROUND);
    const payload = [...around, ...wide(value).reverse(), ...around];
    return this.request(OPCODE.WRITE_ONLY, ahead, [...this.range(24, AT - 8), ...payload]);
  }

  /** The answer to an atomic. */
  was(ahead: number, msn: number, original: bigint): string {
    const rest = [...aeth(SYNDROME.ACK, msn), ...wide(original)];
    return this.answer(OPCODE.ATOMIC_ACK, ahead, rest);
  }

  assertAround(): void {
    const { bytes } = this.pair.b;
    assert.deepEqual([...bytes.subarray(AT - 8, AT)], new Array<number>(8).fill(AROUND));
    assert.deepEqual([...bytes.subarray(AT + 8, AT + 16)], new Array<number>(8).fill(AROUND));
  }

  private place(offset: number): number[] {
    return this.range(0, offset).slice(0, 12);
  }
}

describe('RC: fetch and add', () => {
  const sums: [word: bigint, addend: bigint][] = [
    [0n, 1n],
    [0x0102030405060708n, 0x1020304050607080n],
    [0x00000000ffffffffn, 1n],
    [0x00000001fffffffen, 1n],
    [0x0000000580000000n, 0x80000000n],
    [0x00000005ffffffffn, 0x00000002ffffffffn],
    [0x7fffffff00000000n, 0x0000000100000000n],
    [0xffffffff00000000n, 0x0000000100000000n],
    [MASK, 1n],
    [MASK, MASK],
  ];
  for (const [word, addend] of sums) {
    it(`of ${addend.toString(16)} to ${word.toString(16)}`, () => {
      const here = new Atomics();
      here.word = word;
      assert.deepEqual(here.say(here.fetchAdd(0, addend)), [here.was(0, 1, word)]);
      assert.equal(here.word, (word + addend) & MASK);
      here.assertAround();
    });
  }
});

describe('RC: compare and swap', () => {
  const word = 0x1122334455667788n;
  const swap = 0x99aabbccddeeff01n;

  it('of what is there', () => {
    const here = new Atomics();
    here.word = word;
    assert.deepEqual(here.say(here.compareSwap(0, word, swap)), [here.was(0, 1, word)]);
    assert.equal(here.word, swap);
    here.assertAround();
  });

  const others = {
    'its low half': 1n,
    'its high half': 1n << 32n,
    'both halves': (1n << 63n) + 1n,
  };
  for (const [what, difference] of Object.entries(others)) {
    it(`of what differs in ${what}: answers, and leaves it`, () => {
      const here = new Atomics();
      here.word = word;
      const answers = here.say(here.compareSwap(0, word ^ difference, swap));
      assert.deepEqual(answers, [here.was(0, 1, word)]);
      assert.equal(here.word, word);
    });
  }
});

describe('RC: an atomic', () => {
  it('sees what the WRITEs before it in a burst have written, and is seen by those behind', () => {
    const here = new Atomics();
    const answers = here.say(
      here.write(0, 0x500000007n),
      here.fetchAdd(1, 0x100000001n),
      here.write(2, 0x900000000n),
      here.compareSwap(3, 0x900000000n, 0xan),
      here.fetchAdd(4, 1n),
    );
    assert.deepEqual(answers, [
      here.was(1, 2, 0x500000007n),
      here.was(3, 4, 0x900000000n),
      here.was(4, 5, 0xan),
    ]);
    assert.equal(here.word, 0xbn);
  });

  it('asked for again has result and message number of the first time, and adds nothing', () => {
    const here = new Atomics();
    here.word = 0xffffffff_00000000n;
    const requests = [1n, 0x2_00000000n, 4n, 8n].map((addend, i) => here.fetchAdd(i, addend));
    const first = here.say(...requests);
    assert.deepEqual(first, [
      here.was(0, 1, 0xffffffff_00000000n),
      here.was(1, 2, 0xffffffff_00000001n),
      here.was(2, 3, 0x00000001_00000001n),
      here.was(3, 4, 0x00000001_00000005n),
    ]);
    const { word } = here;
    assert.deepEqual(here.say(...requests), first, 'in one burst');
    for (const i of [2, 0, 3, 1]) assert.deepEqual(here.say(requests[i]!), [first[i]]);
    assert.equal(here.word, word);
    assert.equal(here.counters.duplicateRequests, 8);
    assert.equal(here.counters.atomicsAnswered, requests.length);
    assert.equal(here.counters.drops.replayUnknown, 0);
  });

  it('asked for again before it is answered is answered once', () => {
    const here = new Atomics();
    here.word = 5n;
    const request = here.fetchAdd(0, 1n);
    assert.deepEqual(here.say(request, request, request), [here.was(0, 1, 5n)]);
    assert.equal(here.word, 6n);
  });

  it('older than those that are kept is not answered again', () => {
    const here = new Atomics();
    here.word = 0n;
    const requests = [0, 1, 2, 3, 4].map((i) => here.fetchAdd(i, 1n));
    for (const request of requests) here.say(request);
    assert.deepEqual(here.say(requests[0]!), []);
    assert.equal(here.counters.drops.replayUnknown, 1);
    assert.deepEqual(here.say(requests[1]!), [here.was(1, 2, 1n)]);
    assert.equal(here.word, 5n);
  });

  it('is not answered with the READ of the same PSN, nor a READ with an atomic', () => {
    const here = new Atomics();
    here.say(here.fetchAdd(0, 1n));
    here.say(here.read(1, 8));
    assert.deepEqual(here.say(here.read(0, 8)), []);
    assert.deepEqual(here.say(here.fetchAdd(1, 1n)), []);
    assert.equal(here.counters.drops.replayUnknown, 2);
  });

  it('by the hundred in one burst crowds out nothing', () => {
    const here = new Atomics();
    postReceive(here.pair.b, here.qpB, [{ offset: 64, length: MTU }]);
    here.word = 0n;
    const request = here.fetchAdd(0, 1n);
    here.say(request);
    const repeated = new Array<Uint8Array>(300).fill(request);
    const answers = here.say(...repeated, here.request(OPCODE.SEND_ONLY, 1, [1, 2, 3, 4]));
    assert.deepEqual(answers, [here.was(0, 1, 0n), here.acknowledgement(1, SYNDROME.ACK, 2)]);
    assert.equal(drain(here.pair.b.receiveCq).length, 1);
  });

  it('that is refused leaves its word, and those before it are answered', () => {
    const here = new Atomics();
    here.word = 7n;
    const answers = here.say(here.fetchAdd(0, 1n), here.fetchAdd(1, 1n, AT + 4));
    const refusal = here.acknowledgement(1, SYNDROME.INVALID, 1);
    assert.deepEqual(answers, [here.was(0, 1, 7n), refusal]);
    assert.equal(here.word, 8n);
    assert.equal(here.qpB.state, QpState.ERR);
    here.assertAround();
  });

  for (const answered of [0, 6]) {
    it(`that finds no place among those unanswered is refused, after ${answered}`, () => {
      const here = new Atomics();
      here.word = 0n;
      for (let i = 0; i < answered; i++) here.say(here.fetchAdd(i, 1n));
      const requests = [0, 1, 2, 3, 4].map((i) => here.fetchAdd(answered + i, 1n));
      const msn = answered + 4;
      assert.deepEqual(here.say(...requests), [
        ...[0, 1, 2, 3].map((i) => here.was(answered + i, answered + i + 1, BigInt(answered + i))),
        here.acknowledgement(msn, SYNDROME.INVALID, msn),
      ]);
      assert.equal(here.word, BigInt(msn));
    });
  }
});
