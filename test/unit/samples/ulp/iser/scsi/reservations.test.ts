// Persistent reservations and RESERVE(6): who may do what, who loses what, who is told.

import assert from 'node:assert/strict';
import { ScsiStatus } from '../../../../../../samples/ulp/iser/scsi/index.js';
import { cdb, cdb16, INITIATOR, OTHER, Scene } from './scene.js';

const THIRD = 'iqn.2026-01.example:three,i,0x00023d000003';
const OUT = {
  REGISTER: 0,
  RESERVE: 1,
  RELEASE: 2,
  CLEAR: 3,
  PREEMPT: 4,
  PREEMPT_AND_ABORT: 5,
  REGISTER_AND_IGNORE: 6,
  REGISTER_AND_MOVE: 7,
} as const;
const READY = '00 00 00 00 00 00';
const WRITE = cdb16(0x8a, 0, 1);
const READ = cdb16(0x88, 0, 1);
const CAPACITY = '25 00 00 00 00 00 00 00 00 00';
const BLOCK = new Uint8Array(512);

interface Prout {
  readonly key?: bigint;
  readonly actionKey?: bigint;
  readonly type?: number;
  readonly flags?: number;
  readonly extra?: Uint8Array;
}

function prout(action: number, options: Prout = {}): { bytes: Uint8Array; out: Uint8Array } {
  const { key = 0n, actionKey = 0n, type = 0, flags = 0, extra = new Uint8Array() } = options;
  const out = Buffer.concat([Buffer.alloc(24), extra]);
  out.writeBigUInt64BE(key, 0);
  out.writeBigUInt64BE(actionKey, 8);
  out[20] = flags;
  const bytes = cdb(`5f 0${action} 0${type} 00 00 00000000 00`);
  new DataView(bytes.buffer).setUint32(5, out.length);
  return { bytes, out };
}

class Reserved extends Scene {
  do(from: string, action: number, options: Prout = {}): Promise<Uint8Array> {
    const { bytes, out } = prout(action, options);
    return this.good(bytes, { from, out });
  }

  doConflicts(from: string, action: number, options: Prout = {}): Promise<void> {
    const { bytes, out } = prout(action, options);
    return this.conflicts(bytes, { from, out });
  }

  doRefused(from: string, action: number, options: Prout = {}): Promise<string> {
    const { bytes, out } = prout(action, options);
    return this.refused(bytes, { from, out });
  }

  async in(action: number): Promise<Buffer> {
    return Buffer.from(await this.good(`5e 0${action} 00 00 00 00 00 ff ff 00`, { from: THIRD }));
  }

  async keys(): Promise<bigint[]> {
    const data = await this.in(0);
    assert.equal(data.readUInt32BE(4), data.length - 8);
    return Array.from({ length: (data.length - 8) / 8 }, (_, i) => data.readBigUInt64BE(8 + 8 * i));
  }

  async generation(): Promise<number> {
    return (await this.in(0)).readUInt32BE(0);
  }

  /** "type key", or undefined. */
  async reservation(): Promise<string | undefined> {
    const data = await this.in(1);
    if (data.length === 8) return undefined;
    return `${data[21]! & 0x0f} ${data.readBigUInt64BE(8)}`;
  }

  async attention(from: string): Promise<string> {
    return this.refused(READY, { from });
  }
}

/** Two that are registered, with a reservation of the first. */
async function reserved(type: number): Promise<Reserved> {
  const scene = new Reserved();
  scene.target.nexusOpened(THIRD);
  await scene.do(INITIATOR, OUT.REGISTER, { actionKey: 1n });
  await scene.do(OTHER, OUT.REGISTER, { actionKey: 2n });
  await scene.do(INITIATOR, OUT.RESERVE, { key: 1n, type });
  return scene;
}

describe('SCSI: persistent reservations, access', () => {
  // Registered nexus reads, writes; unregistered one reads, writes (SPC-4 table 66).
  const ACCESS = {
    1: [true, false, true, false],
    3: [false, false, false, false],
    5: [true, true, true, false],
    6: [true, true, false, false],
    7: [true, true, true, false],
    8: [true, true, false, false],
  } as const;

  for (const [type, [otherReads, otherWrites, thirdReads, thirdWrites]] of Object.entries(ACCESS)) {
    it(`of type ${type}`, async () => {
      const scene = await reserved(Number(type));
      const tries = async (from: string, reads: boolean, writes: boolean): Promise<void> => {
        const read = await scene.run(READ, { from });
        assert.equal(read.status, reads ? 0 : 0x18, `${from} reads`);
        const write = await scene.run(WRITE, { from, out: BLOCK });
        assert.equal(write.status, writes ? 0 : 0x18, `${from} writes`);
        const sync = await scene.run('35 00 00 00 00 00 00 00 00 00', { from });
        assert.equal(sync.status, writes ? 0 : 0x18);
        await scene.good(READY, { from });
        await scene.good(CAPACITY, { from });
        await scene.good('12 00 00 00 60 00', { from });
      };
      await tries(INITIATOR, true, true);
      await tries(OTHER, otherReads, otherWrites);
      await tries(THIRD, thirdReads, thirdWrites);
    });
  }
});

describe('SCSI: persistent reservations, service actions', () => {
  it('register, change and drop keys, and count that', async () => {
    const scene = new Reserved();
    await scene.doConflicts(INITIATOR, OUT.REGISTER, { key: 9n, actionKey: 1n });
    assert.equal(await scene.generation(), 0);
    await scene.do(INITIATOR, OUT.REGISTER, { actionKey: 1n });
    await scene.doConflicts(INITIATOR, OUT.REGISTER, { actionKey: 2n });
    await scene.do(INITIATOR, OUT.REGISTER, { key: 1n, actionKey: 2n });
    assert.deepEqual(await scene.keys(), [2n]);
    await scene.do(OTHER, OUT.REGISTER_AND_IGNORE, { key: 77n, actionKey: 3n });
    assert.deepEqual(await scene.keys(), [2n, 3n]);
    assert.equal(await scene.generation(), 3);
    await scene.do(INITIATOR, OUT.REGISTER, { key: 2n });
    await scene.do(OTHER, OUT.REGISTER_AND_IGNORE, {});
    await scene.do(OTHER, OUT.REGISTER_AND_IGNORE, {});
    assert.deepEqual(await scene.keys(), []);
    assert.equal(await scene.generation(), 5);
  });

  it('reserve once, again as it was, and for registered nexuses alone', async () => {
    const scene = await reserved(3);
    assert.equal(await scene.reservation(), '3 1');
    await scene.do(INITIATOR, OUT.RESERVE, { key: 1n, type: 3 });
    await scene.doConflicts(INITIATOR, OUT.RESERVE, { key: 1n, type: 1 });
    await scene.doConflicts(OTHER, OUT.RESERVE, { key: 2n, type: 3 });
    await scene.doConflicts(THIRD, OUT.RESERVE, { key: 0n, type: 3 });
    await scene.doConflicts(INITIATOR, OUT.RESERVE, { key: 5n, type: 3 });
    assert.equal(await scene.doRefused(INITIATOR, OUT.RESERVE, { key: 1n, type: 2 }), '05/24/00');
  });

  it('release what is held, of the right type, and tell registrants', async () => {
    const scene = await reserved(6);
    assert.equal(await scene.doRefused(INITIATOR, OUT.RELEASE, { key: 1n, type: 5 }), '05/26/04');
    await scene.doConflicts(INITIATOR, OUT.RELEASE, { key: 2n, type: 6 });
    await scene.do(OTHER, OUT.RELEASE, { key: 2n, type: 6 });
    assert.equal(await scene.reservation(), '6 1');
    await scene.do(INITIATOR, OUT.RELEASE, { key: 1n, type: 6 });
    assert.equal(await scene.reservation(), undefined);
    assert.equal(await scene.attention(OTHER), '06/2a/04');
    await scene.good(READY, { from: THIRD });
    const quiet = await reserved(3);
    await quiet.do(INITIATOR, OUT.RELEASE, { key: 1n, type: 3 });
    await quiet.good(READY, { from: OTHER });
  });

  it('end with the registration of the holder; of all registrants, with the last one', async () => {
    const one = await reserved(5);
    await one.do(INITIATOR, OUT.REGISTER, { key: 1n });
    assert.equal(await one.reservation(), undefined);
    assert.equal(await one.attention(OTHER), '06/2a/04');
    const all = await reserved(8);
    assert.equal(await all.reservation(), '8 0');
    await all.do(INITIATOR, OUT.REGISTER, { key: 1n });
    assert.equal(await all.reservation(), '8 0');
    await all.conflicts(READ, { from: INITIATOR });
    await all.good(READ, { from: OTHER });
    await all.do(OTHER, OUT.REGISTER, { key: 2n });
    assert.equal(await all.reservation(), undefined);
    await all.good(READ, { from: INITIATOR });
  });

  it('clear everything, and tell the others', async () => {
    const scene = await reserved(3);
    await scene.doConflicts(THIRD, OUT.CLEAR, { key: 0n });
    await scene.do(OTHER, OUT.CLEAR, { key: 2n });
    assert.deepEqual([await scene.keys(), await scene.reservation()], [[], undefined]);
    assert.equal(await scene.attention(INITIATOR), '06/2a/03');
    await scene.good(READY, { from: OTHER });
  });

  it('preempt the holder, and take over', async () => {
    const scene = await reserved(3);
    await scene.doConflicts(OTHER, OUT.PREEMPT, { key: 2n, actionKey: 5n, type: 1 });
    assert.equal(
      await scene.doRefused(OTHER, OUT.PREEMPT, { key: 2n, actionKey: 0n, type: 1 }),
      '05/26/00',
    );
    assert.equal(
      await scene.doRefused(OTHER, OUT.PREEMPT, { key: 2n, actionKey: 1n, type: 0 }),
      '05/24/00',
    );
    assert.deepEqual(await scene.keys(), [1n, 2n]);
    await scene.do(OTHER, OUT.PREEMPT, { key: 2n, actionKey: 1n, type: 1 });
    assert.deepEqual(await scene.keys(), [2n]);
    assert.equal(await scene.reservation(), '1 2');
    assert.equal(await scene.attention(INITIATOR), '06/2a/05');
    await scene.conflicts(WRITE, { from: INITIATOR, out: BLOCK });
  });

  it('preempt a registration alone, and leave the reservation', async () => {
    const scene = await reserved(5);
    await scene.do(INITIATOR, OUT.PREEMPT, { key: 1n, actionKey: 2n, type: 3 });
    assert.deepEqual(await scene.keys(), [1n]);
    assert.equal(await scene.reservation(), '5 1');
    assert.equal(await scene.attention(OTHER), '06/2a/05');
  });

  it('preempt all registrants with a key of 0, and tell who remains of a new type', async () => {
    const scene = await reserved(7);
    await scene.do(OTHER, OUT.PREEMPT, { key: 2n, actionKey: 0n, type: 3 });
    assert.deepEqual(await scene.keys(), [2n]);
    assert.equal(await scene.reservation(), '3 2');
    assert.equal(await scene.attention(INITIATOR), '06/2a/05');
    const other = await reserved(5);
    await other.do(THIRD, OUT.REGISTER, { actionKey: 3n });
    await other.do(OTHER, OUT.PREEMPT, { key: 2n, actionKey: 1n, type: 3 });
    assert.equal(await other.attention(THIRD), '06/2a/04');
  });

  it('preempt and abort what the others are at', async () => {
    const scene = await reserved(3);
    let come: () => void = () => {};
    const coming = new Promise<void>((resolve) => (come = resolve));
    const abort = new AbortController();
    const ended = new Promise<void>((resolve) =>
      abort.signal.addEventListener('abort', () => resolve()),
    );
    const held = scene.target.execute({
      initiatorPort: INITIATOR,
      lun: new Uint8Array(8),
      cdb: WRITE,
      attribute: 'SIMPLE',
      dataOutBytes: 512,
      dataInBytes: 0,
      pull: async () => {
        come();
        await ended;
        throw new Error('aborted');
      },
      push: () => assert.fail('there is no data-in'),
      abort,
    });
    await coming;
    const { bytes, out } = prout(OUT.PREEMPT_AND_ABORT, { key: 2n, actionKey: 1n, type: 3 });
    const preempting = scene.target.execute({
      initiatorPort: OTHER,
      lun: new Uint8Array(8),
      cdb: bytes,
      attribute: 'SIMPLE',
      dataOutBytes: out.length,
      dataInBytes: 0,
      pull: async (offset, into) => into.set(out.subarray(offset, offset + into.length)),
      push: () => assert.fail('there is no data-in'),
      abort: new AbortController(),
    });
    assert.equal((await preempting).status, ScsiStatus.GOOD);
    const { status, isAborted } = await held;
    assert.deepEqual([status, isAborted], [ScsiStatus.TASK_ABORTED, false], 'and it is told');
  });

  it('move the reservation to another port, which the TransportID names', async () => {
    const scene = await reserved(3);
    const name = Buffer.from(`${THIRD}\0`);
    const padded = Buffer.concat([name, Buffer.alloc((4 - (name.length % 4)) % 4)]);
    const id = Buffer.concat([Buffer.from([0x45, 0, 0, padded.length]), padded]);
    const list = Buffer.concat([Buffer.alloc(24), id]);
    list.writeBigUInt64BE(1n, 0);
    list.writeBigUInt64BE(33n, 8);
    list[17] = 0x02;
    list.writeUInt16BE(1, 18);
    list.writeUInt32BE(id.length, 20);
    const bytes = cdb('5f 07 00 00 00 00000000 00');
    new DataView(bytes.buffer).setUint32(5, list.length);
    await scene.conflicts(bytes, { from: OTHER, out: list });
    await scene.good(bytes, { out: list });
    assert.equal(await scene.reservation(), '3 33');
    assert.deepEqual(await scene.keys(), [2n, 33n]);
    await scene.good(WRITE, { from: THIRD, out: BLOCK });
    await scene.conflicts(WRITE, { out: BLOCK });
    list[24] = 0x46;
    assert.equal(await scene.refused(bytes, { from: THIRD, out: list }), '05/26/00');
  });

  it('register other ports by TransportID, and tell all in full status', async () => {
    const scene = new Reserved();
    const name = Buffer.alloc(44);
    name.write(OTHER);
    const id = Buffer.concat([Buffer.from([0x45, 0, 0, name.length]), name]);
    const extra = Buffer.concat([Buffer.from([0, 0, 0, id.length]), id]);
    await scene.do(INITIATOR, OUT.REGISTER, { actionKey: 4n, flags: 0x08, extra });
    await scene.do(INITIATOR, OUT.RESERVE, { key: 4n, type: 1 });
    const status = await scene.in(3);
    assert.equal(status.readUInt32BE(4), status.length - 8);
    const first = status.subarray(8);
    const length = first.readUInt32BE(20);
    const second = first.subarray(24 + length);
    assert.deepEqual([first.readBigUInt64BE(0), second.readBigUInt64BE(0)], [4n, 4n]);
    assert.deepEqual([first[12], first[13], second[12]], [1, 1, 0]);
    assert.ok(first.subarray(28).toString().startsWith(`${INITIATOR}\0`));
    assert.ok(second.subarray(28).toString().startsWith(`${OTHER}\0`));
    await scene.doConflicts(INITIATOR, OUT.REGISTER, { key: 4n, actionKey: 5n, flags: 8, extra });
  });

  it('tell what they can: six types, no persistence over a loss of power', async () => {
    const scene = new Reserved();
    assert.equal((await scene.in(2)).toString('hex'), '00080c80ea010000');
    const aptpl = await scene.doRefused(INITIATOR, OUT.REGISTER, { actionKey: 1n, flags: 1 });
    assert.equal(aptpl, '05/26/00');
    assert.equal(await scene.refused('5e 04 00 00 00 00 00 ff ff 00'), '05/24/00');
    assert.equal(await scene.refused('5f 08 00 00 00 00 00 00 18 00', { out: BLOCK }), '05/24/00');
    assert.equal(await scene.refused('5f 00 00 00 00 00 00 00 17 00', { out: BLOCK }), '05/1a/00');
    assert.equal(await scene.refused('5f 00 00 00 00 ff ff ff ff 00', { out: BLOCK }), '05/1a/00');
    const cut = await scene.good('5e 00 00 00 00 00 00 00 04 00');
    assert.equal(cut.length, 4);
  });

  it('survive the session of the holder', async () => {
    const scene = await reserved(3);
    await scene.target.nexusLost(INITIATOR);
    await scene.conflicts(READ, { from: OTHER });
    scene.target.nexusOpened(INITIATOR);
    await scene.good(READ);
  });
});

describe('SCSI: RESERVE(6)', () => {
  const RESERVE = '16 00 00 00 00 00';
  const RELEASE = '17 00 00 00 00 00';

  it('keeps all others out but from what asks who is there', async () => {
    const scene = new Scene();
    await scene.good(RESERVE);
    await scene.good(RESERVE);
    for (const bytes of [RESERVE, READY, READ, CAPACITY, '1a 08 3f 00 ff 00']) {
      await scene.conflicts(bytes, { from: OTHER });
      if (bytes !== RESERVE) await scene.good(bytes);
    }
    await scene.good('12 00 00 00 60 00', { from: OTHER });
    await scene.good('03 00 00 00 12 00', { from: OTHER });
    await scene.good(RELEASE, { from: OTHER });
    await scene.conflicts(READ, { from: OTHER });
    await scene.good(RELEASE);
    await scene.good(RESERVE, { from: OTHER });
  });

  it('ends with the session, and with a reset', async () => {
    const scene = new Scene();
    await scene.good(RESERVE);
    await scene.target.nexusLost(INITIATOR);
    await scene.good(RESERVE, { from: OTHER });
    await scene.target.manage('LOGICAL UNIT RESET', INITIATOR, new Uint8Array(8));
    scene.target.nexusOpened(INITIATOR);
    await scene.good(RESERVE);
  });

  it('and registrations exclude each other', async () => {
    const scene = new Reserved();
    await scene.do(INITIATOR, OUT.REGISTER, { actionKey: 1n });
    await scene.conflicts(RESERVE);
    await scene.conflicts(RELEASE);
  });
});
