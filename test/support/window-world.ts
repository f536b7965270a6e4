/** What tests of memory windows stand on. */
import assert from 'node:assert/strict';
import {
  Access,
  type MemoryRegion,
  type MemoryWindow,
  nextRkey,
  type QueuePair,
  WcStatus,
  WrOpcode,
} from '../../core/spi/index.js';
import {
  type Bind,
  connect,
  drain,
  HcaPair,
  postReceive,
  postSend,
  type SendRequest,
} from './hca-pair.js';

const { SUCCESS } = WcStatus;
const { REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC, LOCAL_WRITE, MW_BIND } = Access;
export const REMOTE = REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC;
/** Where windows lie in the region of b, unless a test says otherwise. */
export const START = 0x2000;
export const LENGTH = 0x1000;

/** Two sides, connected, and windows of the second that the first uses. */
export class WindowWorld {
  readonly pair: HcaPair;
  readonly qpA: QueuePair;
  readonly qpB: QueuePair;
  readonly region: MemoryRegion;

  constructor(seed = 1, access: number = LOCAL_WRITE | MW_BIND) {
    this.pair = new HcaPair(seed);
    const { a, b } = this.pair;
    this.qpA = a.createQp();
    this.qpB = b.createQp();
    connect(this.pair, this.qpA, this.qpB);
    a.bytes.fill(0xaa, 0, 0x4000);
    this.region = b.pd.registerMemory(b.bytes, access, b.base);
  }

  window(type: 1 | 2): MemoryWindow {
    return this.pair.b.driver.device.createMemoryWindow(this.pair.b.pd, type);
  }

  bindOf(window: MemoryWindow, change: Partial<Bind> = {}): Bind {
    return {
      window,
      rkey: nextRkey(window.rkey),
      region: this.region,
      address: this.pair.b.base + BigInt(START),
      length: LENGTH,
      access: REMOTE,
      ...change,
    };
  }

  postBind(window: MemoryWindow, change: Partial<Bind> = {}, flags?: number): void {
    const bind = this.bindOf(window, change);
    postSend(this.pair.b, this.qpB, {
      opcode: WrOpcode.BIND_MW,
      bind,
      ...(flags !== undefined && { flags }),
    });
  }

  /** A window, bound; its key. */
  bound(type: 1 | 2, change: Partial<Bind> = {}): MemoryWindow {
    const window = this.window(type);
    this.postBind(window, change);
    assert.deepEqual(this.statuses('b'), [SUCCESS]);
    return window;
  }

  statuses(side: 'a' | 'b', forUs = 1000): number[] {
    this.pair.run(forUs);
    return drain(this.pair[side].sendCq).map((c) => c.status);
  }

  request(opcode: number, rkey: number, offset = START, length = 8): SendRequest {
    const remoteAddress = this.pair.b.base + BigInt(offset);
    return { opcode, segments: [{ offset: 0, length }], remoteAddress, rkey };
  }

  /** What the peer's request through a key ends with. */
  access(opcode: number, rkey: number, offset = START, length = 8, qp = this.qpA): number {
    postSend(this.pair.a, qp, this.request(opcode, rkey, offset, length));
    const [status] = this.statuses('a', 20_000);
    return status!;
  }

  sendWithInvalidate(rkey: number): void {
    postReceive(this.pair.b, this.qpB, [{ offset: 0, length: 64 }]);
    const opcode = WrOpcode.SEND_WITH_INV;
    const segments = [{ offset: 0, length: 8 }];
    postSend(this.pair.a, this.qpA, { opcode, segments, immediate: rkey });
  }

  localInvalidate(rkey: number): void {
    postSend(this.pair.b, this.qpB, { opcode: WrOpcode.LOCAL_INV, immediate: rkey });
  }
}
