/** An RC responder alone: packets made by hand go in, what comes out is looked at and lost. */
import { QpState, type QueuePair } from '../../core/spi/index.js';
import { connect, type ConnectOverrides, HcaPair } from './hca-pair.js';
import { packet, reth } from './request-packets.js';

export const FIRST_PSN = 0xfffffa;
export const MTU = 256;

export const OPCODE = {
  SEND_FIRST: 0,
  SEND_MIDDLE: 1,
  SEND_LAST: 2,
  SEND_ONLY: 4,
  WRITE_FIRST: 6,
  WRITE_MIDDLE: 7,
  WRITE_LAST: 8,
  WRITE_LAST_IMMEDIATE: 9,
  WRITE_ONLY: 10,
  WRITE_ONLY_IMMEDIATE: 11,
  READ: 12,
  READ_FIRST: 13,
  READ_MIDDLE: 14,
  READ_LAST: 15,
  READ_ONLY: 16,
  ACK: 17,
  ATOMIC_ACK: 18,
  COMPARE_SWAP: 19,
  FETCH_ADD: 20,
} as const;

export const SYNDROME = {
  ACK: 0x1f,
  SEQUENCE: 0x60,
  INVALID: 0x61,
  ACCESS: 0x62,
  OPERATIONAL: 0x63,
} as const;

export class ResponderScene {
  readonly pair: HcaPair;
  readonly qpA: QueuePair;
  readonly qpB: QueuePair;
  private readonly heard: string[] = [];

  constructor(private readonly overrides: ConnectOverrides = {}) {
    this.pair = new HcaPair(31);
    this.qpA = this.pair.a.createQp();
    this.qpB = this.pair.b.createQp();
    connect(this.pair, this.qpA, this.qpB, overrides, MTU);
    this.pair.b.port.filter = (bytes) => {
      this.heard.push(hex(bytes));
      return [];
    };
  }

  /** Its counters. */
  get counters(): HcaPair['b']['driver']['device']['counters'] {
    return this.pair.b.driver.device.counters;
  }

  /** Both ends forget everything, and are connected once more. */
  connectAgain(): void {
    for (const qp of [this.qpA, this.qpB]) qp.modify({ state: QpState.RESET });
    connect(this.pair, this.qpA, this.qpB, this.overrides, MTU);
  }

  /** A request `ahead` of the first PSN, that asks for an answer. */
  request(opcode: number, ahead: number, rest: readonly number[], asks = true): Uint8Array {
    return packet(opcode, this.qpB.qpn, (FIRST_PSN + ahead) & 0xffffff, rest, asks);
  }

  read(ahead: number, length: number, offset = 0): Uint8Array {
    return this.request(OPCODE.READ, ahead, this.range(length, offset));
  }

  /** RETH of b's own memory. */
  range(length: number, offset = 0, rkey = this.pair.b.region.rkey): number[] {
    return reth(this.pair.b.base + BigInt(offset), rkey, length);
  }

  /** Packets arrive in one burst; returns the answers to all of them, in hexadecimal digits. */
  say(...packets: readonly Uint8Array[]): string[] {
    for (const one of packets) this.pair.b.port.inject(one);
    return this.hear();
  }

  /** What there is to hear by now. */
  hear(): string[] {
    while (this.pair.b.driver.pump());
    return this.heard.splice(0);
  }

  /** An answer as it is to be: opcode, PSN, and what follows the BTH. */
  answer(opcode: number, ahead: number, rest: readonly number[]): string {
    return hex(packet(opcode, this.qpA.qpn, (FIRST_PSN + ahead) & 0xffffff, rest));
  }

  /** An acknowledgement with a syndrome and the number of messages completed. */
  acknowledgement(ahead: number, syndrome: number, msn: number): string {
    return this.answer(OPCODE.ACK, ahead, aeth(syndrome, msn));
  }
}

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

export function aeth(syndrome: number, msn: number): number[] {
  return [syndrome, (msn >>> 16) & 255, (msn >>> 8) & 255, msn & 255];
}

export function wide(value: bigint): number[] {
  const bytes = new DataView(new ArrayBuffer(8));
  bytes.setBigUint64(0, value);
  return [...new Uint8Array(bytes.buffer)];
}
