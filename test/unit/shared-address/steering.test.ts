/**
 * The program that the system runs for each packet says what the function says, and both say what
 * the offsets of the InfiniBand headers say. The machine is classic BPF as socket filters have it.
 */
import assert from 'node:assert/strict';
import { SeededRandom } from '../../../providers/mock/index.js';
import {
  type Directory,
  type Instruction,
  ownerOf,
  slotOf,
  steeringProgram,
} from '../../../providers/shared-address/steering.js';

/** What a load beyond the packet makes of the program: it ends with 0. */
class BeyondPacket extends Error {}

function load(packet: Uint8Array, at: number, bytes: number): number {
  if (at + bytes > packet.length) throw new BeyondPacket();
  let value = 0;
  for (let i = 0; i < bytes; i++) value = value * 256 + (packet[at + i] ?? 0);
  return value;
}

/** Runs a program of the codes that there are; any other code fails the test. */
function interpret(program: readonly Instruction[], packet: Uint8Array): number {
  let a = 0;
  for (let pc = 0; ; pc++) {
    const instruction = program[pc];
    assert.ok(instruction, `the program runs over its end, at ${pc}`);
    const [code, jt, jf, k] = instruction;
    const jump = (taken: boolean): number => pc + (taken ? jt : jf);
    try {
      if (code === 0x30) a = load(packet, k, 1);
      else if (code === 0x28) a = load(packet, k, 2);
      else if (code === 0x20) a = load(packet, k, 4);
      else if (code === 0x54) a = (a & k) >>> 0;
      else if (code === 0x15) pc = jump(a === k);
      else if (code === 0x45) pc = jump((a & k) !== 0);
      else if (code === 0x16) return a;
      else if (code === 0x06) return k;
      else assert.fail(`code 0x${code.toString(16)} at ${pc}`);
    } catch (error) {
      if (error instanceof BeyondPacket) return 0;
      throw error;
    }
  }
}

const CM = 0x07;
const SEND = 0x03;
const RESPONSE = 0x81;
const CM_ATTRIBUTES = [0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a] as const;
const HOMES = [0, 1, 7, 254];

interface Mad {
  readonly mgmtClass: number;
  readonly method?: number;
  readonly attribute?: number;
  readonly transaction?: number;
  readonly local?: number;
  readonly remote?: number;
  readonly service?: bigint;
}

/** BTH, DETH and a MAD of 256 bytes. */
function madPacket(mad: Mad, qpn = 1): Uint8Array {
  const packet = new Uint8Array(12 + 8 + 256);
  const view = new DataView(packet.buffer);
  view.setUint8(0, 0x64);
  view.setUint32(4, qpn);
  view.setUint8(20, 1);
  view.setUint8(21, mad.mgmtClass);
  view.setUint8(23, mad.method ?? SEND);
  view.setUint32(28, mad.transaction ?? 0);
  view.setUint16(36, mad.attribute ?? 0);
  view.setUint32(44, mad.local ?? 0);
  view.setUint32(48, mad.remote ?? 0);
  view.setBigUint64(52, mad.service ?? 0n);
  return packet;
}

function dataPacket(qpn: number): Uint8Array {
  const packet = new Uint8Array(16);
  new DataView(packet.buffer).setUint32(4, qpn);
  return packet;
}

/** Both say so, wherever what belongs to no slot goes. @param slot undefined: to home */
function steers(packet: Uint8Array, slot: number | undefined, what: string): void {
  for (const home of HOMES) {
    const expected = slot ?? home;
    assert.equal(slotOf(packet, home), expected, `${what}, home ${home}`);
    assert.equal(interpret(steeringProgram(home), packet), expected, `program: ${what}`);
  }
}

const inSlot = (slot: number): number => slot * 2 ** 24 + 0x123456;

describe('steering of a shared device', () => {
  it('sends data by the top byte of its queue pair number', () => {
    for (const slot of [0, 1, 2, 100, 254]) {
      steers(dataPacket(slot * 65536 + 0x1234), slot, `slot ${slot}`);
    }
    // What precedes the QPN in its word is no part of it (BTH: reserved, FECN and BECN).
    const marked = dataPacket(0x030010);
    marked[4] = 0xc0;
    steers(marked, 3, 'marked');
  });

  it('sends what the CM answers to the process that has asked, and requests home', () => {
    for (const attribute of CM_ATTRIBUTES) {
      const mad = { mgmtClass: CM, attribute, local: inSlot(2), remote: inSlot(3) };
      const name = `attribute 0x${attribute.toString(16)}`;
      const expected = attribute === 0x10 || attribute === 0x17 ? undefined : 3;
      steers(madPacket(mad), attribute === 0x18 ? 2 : expected, name);
    }
  });

  it('sends REJ and MRA of a request that could not be read by its transaction id', () => {
    for (const attribute of [0x11, 0x12]) {
      const mad = { mgmtClass: CM, attribute, local: inSlot(2), transaction: inSlot(9) };
      steers(madPacket(mad), 9, `attribute 0x${attribute.toString(16)}`);
    }
  });

  it('sends responses of other classes by the transaction id, and their requests home', () => {
    for (const mgmtClass of [0x03, 0x04, 0x09, 0x30]) {
      const transaction = inSlot(5);
      steers(madPacket({ mgmtClass, method: RESPONSE, transaction }), 5, 'response');
      steers(madPacket({ mgmtClass, method: 0x01, transaction }), undefined, 'request');
    }
  });

  it('sends what is for no queue pair but QP1 of slot 0 to slot 0, not home', () => {
    const mad = { mgmtClass: CM, attribute: 0x10 };
    steers(madPacket(mad, 0), 0, 'QP0');
    steers(madPacket(mad, 2), 0, 'QP2');
    steers(madPacket(mad, 0x0101), 0, 'QP 0x101');
  });

  it('is the same for packets of all lengths', () => {
    for (const attribute of CM_ATTRIBUTES) {
      const mad = { mgmtClass: CM, attribute, local: inSlot(2), remote: inSlot(3) };
      const whole = madPacket(mad);
      for (let length = 0; length <= 60; length++) {
        const packet = whole.subarray(0, length);
        for (const home of HOMES) {
          assert.equal(interpret(steeringProgram(home), packet), slotOf(packet, home), `${length}`);
        }
      }
    }
  });

  it('is the same for packets of random bytes, many of them near what counts', () => {
    const random = new SeededRandom(25);
    const programs = HOMES.map((home) => steeringProgram(home));
    const seen = new Set<number>();
    for (let i = 0; i < 20_000; i++) {
      const packet = Uint8Array.from({ length: random.below(70) }, () => random.below(256));
      const put = (at: number, value: number): void => {
        if (at < packet.length) packet[at] = value;
      };
      if (random.percent(80)) for (const at of [5, 6]) put(at, 0);
      if (random.percent(80)) put(7, 1);
      if (random.percent(60)) put(21, CM);
      if (random.percent(80)) {
        put(36, 0);
        put(37, 0x0f + random.below(14));
      }
      if (random.percent(30)) for (const at of [48, 49, 50, 51]) put(at, 0);
      for (const [n, home] of HOMES.entries()) {
        const slot = slotOf(packet, home);
        const found = interpret(programs[n] ?? [], packet);
        if (found !== slot) assert.equal(found, slot, Buffer.from(packet).toString('hex'));
        seen.add(slot);
      }
    }
    assert.ok(seen.size > 200, `${seen.size} slots are seen`);
  });

  it('jumps forward only, within the limits of classic BPF', () => {
    for (const home of HOMES) {
      const program = steeringProgram(home);
      assert.ok(program.length <= 64, `${program.length} instructions`);
      for (const [at, [code, jt, jf]] of program.entries()) {
        const isJump = code === 0x15 || code === 0x45;
        for (const jump of [jt, jf]) {
          assert.ok(jump >= 0 && jump <= 255, `at ${at}`);
          assert.ok(isJump ? at + 1 + jump < program.length : jump === 0, `at ${at}`);
        }
      }
    }
  });
});

describe('the owner of a packet', () => {
  const directory: Directory = {
    listenerOf: (serviceId) => (serviceId === 7000n ? 4 : undefined),
    classOwnerOf: (mgmtClass) => (mgmtClass === 0x30 ? 6 : undefined),
  };
  const owner = (mad: Mad): number => ownerOf(madPacket(mad), directory, 200);

  it('of a request is the process that listens, else the one that asks', () => {
    for (const attribute of [0x10, 0x17]) {
      assert.equal(owner({ mgmtClass: CM, attribute, service: 7000n }), 4);
      assert.equal(owner({ mgmtClass: CM, attribute, service: 7001n }), 200);
    }
    assert.equal(owner({ mgmtClass: 0x30, method: 0x01 }), 6);
    assert.equal(owner({ mgmtClass: 0x31, method: 0x01 }), 200);
  });

  it('of all else is the one that it is steered to', () => {
    assert.equal(owner({ mgmtClass: CM, attribute: 0x13, remote: inSlot(3) }), 3);
    assert.equal(owner({ mgmtClass: 0x30, method: RESPONSE, transaction: inSlot(5) }), 5);
    assert.equal(ownerOf(dataPacket(0x090000), directory, 200), 9);
    assert.equal(ownerOf(dataPacket(0x000020), directory, 200), 0);
    assert.equal(ownerOf(new Uint8Array(3), directory, 200), 0);
  });
});
