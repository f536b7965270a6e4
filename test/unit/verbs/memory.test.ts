// Memory: what may be registered, and that it stays where it is for as long as a device may write.

import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { MemoryRegion } from '../../../core/spi/device/device.js';
import { Access, WcStatus, WrOpcode } from '../../../core/spi/wire/ib.js';
import { fakeVerbs } from '../../fake-verbs/control.js';
import { Pair } from '../../fake-verbs/pair.js';
import { drain, postSends } from '../../fake-verbs/work.js';

const { LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, ZERO_BASED } = Access;

describe('verbs: memory', () => {
  const fake = fakeVerbs();
  let pair: Pair;
  beforeEach(() => (pair = new Pair()));
  afterEach(async () => {
    fake.setMemlock(0);
    await pair.close();
  });

  const register = (
    memory: ArrayBufferView,
    access: number = LOCAL_WRITE,
    iova?: bigint,
  ): MemoryRegion => pair.pd.registerMemory(memory, access, iova);

  /** The peer writes eight bytes of `byte` to the start of a region. */
  const writeTo = (region: MemoryRegion, byte: number): void => {
    pair.memory.fill(byte, 0, 8);
    const remote = { address: region.iova, rkey: region.rkey };
    postSends(pair.a, { opcode: WrOpcode.RDMA_WRITE, segments: [pair.at(0, 8)], remote });
    assert.equal(drain(pair.queues['send A'])[0]?.status, WcStatus.SUCCESS);
  };

  const collect = async (): Promise<void> => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    for (let i = 0; i < 3; i++) {
      gc();
      await new Promise(setImmediate);
    }
  };

  it('refuses, with the reason, what would not stay', () => {
    const refusals: [ArrayBufferView, RegExp][] = [
      [Buffer.from('pooled'), /pool/],
      [new Uint8Array(resizable()), /resizable/],
      [new Uint8Array(0), /0 bytes/],
      [detached(), /detached/],
    ];
    for (const [memory, message] of refusals) {
      assert.throws(() => register(memory), { name: 'SpiError', code: 'EINVAL', message });
    }
  });

  function resizable(): ArrayBuffer {
    const Resizable = ArrayBuffer as new (bytes: number, options: object) => ArrayBuffer;
    return new Resizable(8, { maxByteLength: 16 });
  }

  function detached(): Uint8Array {
    const memory = new Uint8Array(8);
    structuredClone(memory.buffer, { transfer: [memory.buffer] });
    return memory;
  }

  it('takes allocated memory at any page, zeroed, and any view of ordinary memory', () => {
    const memory = new Uint8Array(pair.device.allocate(10_000));
    assert.ok(memory.every((byte) => byte === 0));
    const region = register(memory, LOCAL_WRITE | REMOTE_WRITE, 0x12345000n);
    assert.deepEqual([region.iova, region.lengthBytes], [0x12345000n, 10_000]);
    writeTo(region, 5);
    assert.deepEqual([...memory.subarray(0, 9)], [5, 5, 5, 5, 5, 5, 5, 5, 0]);
    region.destroy();
    const views = [new Float64Array(4), new DataView(new ArrayBuffer(40), 3, 20)];
    for (const view of [...views, Buffer.allocUnsafeSlow(8)]) {
      const other = register(view, LOCAL_WRITE | REMOTE_WRITE);
      assert.equal(other.lengthBytes, view.byteLength);
      writeTo(other, 7);
      assert.equal(new Uint8Array(view.buffer)[view.byteOffset], 7);
      other.destroy();
    }
    assert.equal(pair.device.allocate(0).byteLength, 0);
  });

  it('takes shared memory', () => {
    const memory = new Uint8Array(new SharedArrayBuffer(4096));
    const region = register(memory, LOCAL_WRITE | REMOTE_WRITE);
    writeTo(region, 9);
    assert.equal(memory[7], 9);
    region.destroy();
  });

  it('cannot be transferred away while a device may write', () => {
    for (const memory of [new Uint8Array(64), new Uint8Array(pair.device.allocate(64))]) {
      const region = register(memory, LOCAL_WRITE | REMOTE_WRITE);
      const { buffer } = memory;
      const { port1, port2 } = new MessageChannel();
      try {
        port1.postMessage(buffer, [buffer]);
      } catch (error) {
        assert.equal((error as Error).name, 'DataCloneError');
      }
      port1.close();
      port2.close();
      assert.equal(buffer.byteLength, 64, 'it is still here');
      writeTo(region, 3);
      assert.equal(memory[0], 3);
      region.destroy();
    }
  });

  it('refuses transfer() with the reason, up to the end of its last region', () => {
    const { buffer, take } = transferable(64);
    const regions = [register(new Uint8Array(buffer)), register(new Uint8Array(buffer, 0, 8))];
    const refused = { code: 'EINVAL', message: /is registered.*lmr\.free\(\)/ };
    for (const region of regions) {
      assert.throws(() => buffer.transfer(), refused);
      assert.equal(buffer.byteLength, 64);
      region.destroy();
    }
    assert.ok(!Object.hasOwn(buffer, 'transfer'));
    assert.throws(() => register(new Uint8Array(64).subarray(64)), /0 bytes/);
    const isTaken = taken(take);
    assert.equal(buffer.byteLength, isTaken ? 0 : 64);
  });

  it('stays while a device may write, though it was taken from its buffer', async () => {
    // So large that what is given back is unmapped: a write would end the process.
    const bytes = 64 << 20;
    const sizes = [
      { size: undefined, make: transferable },
      { size: 0, make: transferable },
      { size: undefined, make: allocated },
      { size: 2 * bytes, make: allocated },
    ];
    for (const { size, make } of sizes) {
      const { buffer, take } = make(bytes);
      const region = register(new Uint8Array(buffer), LOCAL_WRITE | REMOTE_WRITE);
      const isTaken = taken(() => take(size));
      assert.equal(buffer.byteLength, isTaken ? 0 : bytes);
      await collect();
      writeTo(region, 3);
      region.destroy();
    }
  });

  /** Node 26 has no way to detach what is untransferable. */
  function taken(take: () => void): boolean {
    try {
      take();
      return true;
    } catch (error) {
      assert.equal((error as Error).name, 'TypeError');
      return false;
    }
  }

  function allocated(bytes: number): ReturnType<typeof transferable> {
    return transferable(bytes, pair.device.allocate(bytes) as Transferable);
  }

  type Transferable = ArrayBuffer & {
    transfer: (this: ArrayBuffer, bytes?: number) => ArrayBuffer;
  };

  /** A realm that has ArrayBuffer.prototype.transfer, which Node 20 hides behind a flag. */
  function realm<T>(code: string): T {
    if (!('transfer' in ArrayBuffer.prototype)) setFlagsFromString('--harmony-rab-gsab-transfer');
    return runInNewContext(code) as T;
  }

  /** A buffer, and what takes its memory away whatever the buffer has of that name. */
  function transferable(
    bytes: number,
    buffer = realm<Transferable>(`new ArrayBuffer(${bytes})`),
  ): { buffer: Transferable; take: (lengthBytes?: number) => void } {
    const { transfer } = realm<Transferable>('ArrayBuffer.prototype');
    return { buffer, take: (length) => void transfer.call(buffer, length) };
  }

  it('is kept while registered, though nobody else holds it', async () => {
    const regions = [
      register(new Uint8Array(1 << 16).fill(1), LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ),
      register(new Uint8Array(pair.device.allocate(1 << 16)).fill(1), LOCAL_WRITE | REMOTE_READ),
    ];
    for (let i = 0; i < 200; i++) new Uint8Array(1 << 16).fill(2);
    await collect();
    for (const region of regions) {
      const remote = { address: region.iova, rkey: region.rkey };
      postSends(pair.a, { opcode: WrOpcode.RDMA_READ, segments: [pair.at(0, 64)], remote });
      assert.equal(drain(pair.queues['send A'])[0]?.status, WcStatus.SUCCESS);
      assert.ok(pair.memory.subarray(0, 64).every((byte) => byte === 1));
      region.destroy();
    }
    await collect();
  });

  it('is a part of a file, for as long as it is registered', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'dapl-verbs-'));
    const path = join(directory, 'file');
    writeFileSync(path, Buffer.alloc(20_000, 1));
    const fd = openSync(path, 'r+');
    const file = { fd, offsetBytes: 5000, lengthBytes: 8192, shared: true };
    const region = register(pair.device.mapFile(file), LOCAL_WRITE | REMOTE_WRITE);
    assert.throws(() => pair.device.mapFile({ ...file, lengthBytes: 100_000 }), {
      name: 'SpiError',
      code: 'EINVAL',
      message: /20000 bytes/,
    });
    closeSync(fd);
    await collect();
    writeTo(region, 8);
    region.destroy();
    const bytes = readFileSync(path);
    assert.deepEqual([...bytes.subarray(4999, 5009)], [1, 8, 8, 8, 8, 8, 8, 8, 8, 1]);
    rmSync(directory, { recursive: true });
  });

  it('is at an iova of its page offset, at zero when asked, or not at all', () => {
    const memory = new Uint8Array(pair.device.allocate(8192));
    const zero = register(memory, LOCAL_WRITE | REMOTE_WRITE | ZERO_BASED);
    assert.equal(zero.iova, 0n);
    writeTo(zero, 6);
    assert.equal(memory[0], 6);
    zero.destroy();
    assert.throws(() => register(memory.subarray(8), LOCAL_WRITE | ZERO_BASED), {
      code: 'EINVAL',
      message: /iova 0x0; an iova must agree/,
    });
    assert.throws(() => register(memory, REMOTE_WRITE), { message: /need LOCAL_WRITE/ });
    assert.throws(() => register(memory, 1 << 12), { message: /unknown bits/ });
  });

  it('says which limit of locked memory it met', () => {
    fake.setMemlock(1 << 20);
    assert.throws(() => register(new Uint8Array(4 << 20)), {
      code: 'ENOMEM',
      message: /4 MiB.*(RLIMIT_MEMLOCK)/,
    });
  });

  it('is not given back while the driver refuses to let it go', () => {
    const memory = new Uint8Array(64);
    const region = register(memory, LOCAL_WRITE | REMOTE_WRITE);
    fake.inject('ibv_dereg_mr', 1, constants.errno.EBUSY);
    assert.throws(() => region.destroy(), { code: 'EBUSY' });
    writeTo(region, 4);
    assert.equal(memory[0], 4);
    region.destroy();
    region.destroy();
  });
});
