// The iSER target over DAT on a simulated fabric, and an initiator that sends what it likes: memory
// that is not opened, or not there, headers that are none. The disk and another session go on.
import assert from 'node:assert/strict';

import { type Connection, connect } from '../../../../../../core/flow/index.js';
import { type Ia, openIa } from '../../../../../../core/index.js';
import { Fabric, mock } from '../../../../../../providers/mock/index.js';
import { SeededRandom } from '../../../../../../plugins/faults/grammar/seeded-random.js';
import { IscsiTarget, MemoryBackend } from '../../../../../../samples/ulp/iser/index.js';
import { openDisk } from '../../../../../../samples/ulp/iser/initiator/index.js';
import { emitText, iserCmHeader, iserHeader, readTargetPdu, type TargetPdu } from './formats.js';
import { ISID, NORMAL_KEYS, pduOf, TARGET } from './scene.js';

const ADDRESS = '192.0.2.1';
const PORT = 3260;
const BLOCKS = 64;
const BLOCK_BYTES = 512;

describe('iSER target over DAT', () => {
  let there: Ia;
  let here: Ia;
  let target: IscsiTarget;
  let backend: MemoryBackend;
  let notes: string[];
  let conn: Connection;

  beforeEach(async () => {
    const fabric = new Fabric({ seed: 1, autoRun: true });
    there = await openIa(mock({ fabric, address: ADDRESS }));
    here = await openIa(mock({ fabric, address: '192.0.2.2' }));
    backend = new MemoryBackend({ sizeBytes: BLOCKS * BLOCK_BYTES, blockBytes: BLOCK_BYTES });
    notes = [];
    target = new IscsiTarget({
      name: TARGET,
      luns: new Map([[0, backend]]),
      memoryBytes: 1 << 20,
      onNote: (note) => notes.push(note),
    });
    target.listenIser(there, PORT);
    conn = await connectIser(0x80);
  });
  afterEach(async () => {
    await conn.close({ timeoutMs: 0 });
    await target.close(0);
    await Promise.all([here.close(), there.close()]);
  });

  /** @param flags of the header in the private data of iSER */
  async function connectIser(flags: number): Promise<Connection> {
    return connect(here, {
      address: ADDRESS,
      port: PORT,
      receives: { buffers: 32, bufferBytes: 8268 },
      privateData: Uint8Array.of(flags, 0, 0, 0),
    });
  }

  function iser(values: object, pdu: Uint8Array): Uint8Array {
    const bytes = new Uint8Array(28 + pdu.length);
    iserHeader.emit(values, bytes);
    bytes.set(pdu, 28);
    return bytes;
  }

  async function answer(): Promise<TargetPdu> {
    const message = await conn.receive();
    return readTargetPdu(message.bytes.subarray(28));
  }

  async function logIn(): Promise<void> {
    const stages = { currentStage: 1, nextStage: 3, transit: true };
    const pdu = pduOf('loginRequest', { ...stages, isid: ISID }, emitText(NORMAL_KEYS));
    await conn.send(iser({}, pdu));
    const login = await answer();
    assert.ok(login.type === 'loginResponse');
    assert.equal(login.header.status, 0);
  }

  const cdb = (opcode: number, lba: number, blocks: number): Uint8Array =>
    Uint8Array.of(opcode, 0, 0, 0, 0, lba, 0, 0, blocks, 0);
  const READ = (blocks: number): object => ({
    read: true,
    expectedDataTransferLength: blocks * BLOCK_BYTES,
    cdb: cdb(0x28, 0, blocks),
  });
  const WRITE = (blocks: number): object => ({
    write: true,
    expectedDataTransferLength: blocks * BLOCK_BYTES,
    cdb: cdb(0x2a, 0, blocks),
  });
  const command = (values: object): Uint8Array =>
    pduOf('scsiCommand', { final: true, initiatorTaskTag: 5, immediate: true, ...values });

  it('answers the header of iSER: what the initiator takes is what it is told', async () => {
    const flags = (): number => iserCmHeader.view(conn.peerPrivateData).bytes[0] as number;
    assert.equal(flags(), 0x80);
    await conn.close();
    conn = await connectIser(0xc0);
    assert.equal(flags(), 0xc0);
  });

  it('moves data by RDMA, and with the command', async () => {
    // A region cannot be invalidated by the peer.
    await conn.close();
    conn = await connectIser(0xc0);
    await logIn();
    const memory = conn.expose(4 * BLOCK_BYTES, 'read-write');
    const [base, stag] = [BigInt(memory.address), memory.rmrContext];
    memory.bytes.fill(0xab);
    // No unit attention of a new session is waited for; the first command may get one.
    await conn.send(iser({}, command({ cdb: cdb(0, 0, 0) })));
    await answer();
    const written = { writeValid: true, writeStag: stag, writeBase: base };
    await conn.send(iser(written, command(WRITE(4))));
    const wrote = await answer();
    assert.ok(wrote.type === 'scsiResponse');
    assert.equal(wrote.header.status, 0);
    const block = new Uint8Array(BLOCK_BYTES);
    await backend.read(3n, block);
    assert.ok(block.every((byte) => byte === 0xab));
    memory.bytes.fill(0);
    const opened = { readValid: true, readStag: stag, readBase: base };
    await conn.send(iser(opened, command(READ(4))));
    const read = await answer();
    assert.ok(read.type === 'scsiResponse');
    assert.equal(read.header.status, 0);
    assert.ok(memory.bytes.every((byte) => byte === 0xab));
    // The first block with the command, the others from memory: that address is behind it.
    const rest = { writeValid: true, writeStag: stag, writeBase: base };
    const immediate = new Uint8Array(BLOCK_BYTES).fill(0xcd);
    const header = command({ ...WRITE(4), dataSegmentLength: BLOCK_BYTES });
    await conn.send(iser(rest, Buffer.concat([header, immediate])));
    assert.equal((await answer()).type, 'scsiResponse');
    for (const [lba, value] of [0xcd, 0xab, 0xab, 0xab].entries()) {
      await backend.read(BigInt(lba), block);
      assert.ok(block.every((byte) => byte === value));
    }
    // What is declared and not there, as libiscsi does it, is fetched from the beginning.
    memory.bytes.fill(0xef);
    await conn.send(iser(rest, header));
    assert.equal((await answer()).type, 'scsiResponse');
    await backend.read(0n, block);
    assert.ok(block.every((byte) => byte === 0xef));
  });

  it('answers a Hello, and carries on', async () => {
    const hello = new Uint8Array(28);
    hello.set([0x20, 0xaa, 0, 4]);
    await conn.send(hello);
    const reply = await conn.receive();
    assert.deepEqual([...reply.bytes.subarray(0, 2)], [0x30, 0xaa]);
    await logIn();
  });

  const HOSTILE: readonly [string, () => Uint8Array][] = [
    ['a read that opens no memory', () => iser({}, command(READ(1)))],
    ['a write that opens no memory', () => iser({}, command(WRITE(1)))],
    ['memory that is not there', () => iser({ readValid: true, readStag: 1 }, command(READ(1)))],
    [
      'memory to write from that is not there',
      () => iser({ writeValid: true, writeStag: 1, writeBase: 4096n }, command(WRITE(1))),
    ],
    [
      'an address beyond 2^64',
      () => iser({ readValid: true, readStag: 1, readBase: 2n ** 64n - 1n }, command(READ(1))),
    ],
    ['an opcode of iSER that is none', () => iser({ opcode: 9 }, command({}))],
    ['a HelloReply', () => iser({ opcode: 3 }, command({}))],
    ['a header that is cut off', () => iser({}, command({})).subarray(0, 20)],
    ['a PDU that is cut off', () => iser({}, command({})).subarray(0, 60)],
    ['nothing', () => new Uint8Array(0)],
    ['data that is not there', () => iser({}, command({ ...WRITE(1), dataSegmentLength: 9 }))],
    ['unsolicited Data-Out', () => iser({}, pduOf('dataOut', {}, new Uint8Array(64)))],
    ['a login in full feature phase', () => iser({}, pduOf('loginRequest'))],
  ];
  for (const [what, message] of HOSTILE) {
    it(`ends a session by ${what}; disk and others go on`, async () => {
      const disk = await openDisk({
        address: ADDRESS,
        target: TARGET,
        ia: here,
        initiatorName: 'iqn.2026-01.org.example:other',
      });
      try {
        await disk.write(0n, new Uint8Array(BLOCKS * BLOCK_BYTES).fill(0x5a));
        await logIn();
        // The session may be over before the message has been acknowledged.
        await conn.send(message()).catch(() => undefined);
        await conn.closed.catch(() => undefined);
        const there = new Uint8Array(BLOCKS * BLOCK_BYTES);
        await disk.read(0n, there);
        assert.ok(there.every((byte) => byte === 0x5a));
        assert.equal(target.sessionCount, 1);
      } finally {
        await disk.close();
      }
    });
  }

  it('lives through noise by seed', async () => {
    const random = new SeededRandom(7);
    for (let round = 0; round < 60; round++) {
      if (!conn.isOpen) conn = await connectIser(0x80);
      if (round % 2 === 0) await logIn();
      const bytes = iser({ readValid: true, readStag: random.u32() }, command(READ(1)));
      for (let flips = 0; flips < 3; flips++) {
        const at = random.u32() % bytes.length;
        bytes[at] = (bytes[at] ?? 0) ^ (1 << (random.u32() % 8));
      }
      await conn.send(bytes).catch(() => undefined);
      await conn.close();
    }
    conn = await connectIser(0x80);
    await logIn();
    const block = new Uint8Array(BLOCK_BYTES);
    await backend.read(0n, block);
    assert.ok(block.every((byte) => byte === 0));
    assert.ok(
      notes.every((note) => !note.includes('mistake')),
      notes.join('\n'),
    );
  });
});
