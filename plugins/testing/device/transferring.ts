/** Transfers over a reliable connection. */
import assert from 'node:assert/strict';
import { RQE, SQE, WcOpcode, WrOpcode } from 'dapl/spi';
import { NOTES } from './end.js';
import { deviceGroup } from './world.js';

const SIZES = [0, 1, 3, 64, 255, 1024, 4097, 20_000];

export const transferring = deviceGroup('Transferring', (claim) => {
  for (const length of SIZES) {
    claim(`a send of ${length} bytes arrives bit by bit`, async (world) => {
      const { a, b } = world.connected();
      const sent = a.fill(100, length, 3).slice();
      b.receive({ offset: 1000, length: 32_768, cookie: 5 });
      a.send({ pieces: length === 0 ? [] : [{ offset: 100, length }], cookie: 9 });
      const [received] = await world.completions(b, 1);
      assert.deepEqual(
        [received?.status, received?.opcode, received?.cookie, received?.bytes],
        [0, WcOpcode.RECV, 5, length],
      );
      assert.deepEqual([received?.qpn, received?.context], [b.qp.qpn, 4711]);
      assert.deepEqual(b.memory.slice(1000, 1000 + length), sent);
      assert.equal(b.memory[1000 + length], 0, 'a byte beyond');
      const [done] = await world.completions(a, 1);
      assert.deepEqual([done?.cookie, done?.bytes, done?.context], [9, length, 4711]);
    });
  }

  claim('a send is gathered from several pieces', async (world) => {
    const { a, b } = world.connected();
    const all = a.fill(0, 4096, 1);
    b.receive({ offset: 0, length: 4096 });
    const pieces = [
      { offset: 3000, length: 100 },
      { offset: 17, length: 999 },
    ];
    a.send({ pieces });
    await world.completions(b, 1);
    const expected = Buffer.concat([all.subarray(3000, 3100), all.subarray(17, 1016)]);
    assert.deepEqual(Buffer.from(b.memory.subarray(0, 1099)), expected);
  });

  claim('inline payload is that of the doorbell', async (world) => {
    const { a, b } = world.connected();
    if (world.active.attributes.maxInlineBytes < 4) return;
    b.receive({ offset: 0, length: 64 });
    a.send({ inline: Uint8Array.of(1, 2, 3, 4) });
    assert.equal((await world.completions(b, 1))[0]?.bytes, 4);
    assert.equal((await world.completions(a, 1))[0]?.bytes, 4);
    assert.deepEqual([...b.memory.subarray(0, 4)], [1, 2, 3, 4]);
  });

  claim('immediate data comes with the completion', async (world) => {
    const { a, b } = world.connected();
    b.receive({ offset: 0, length: 64 }, { offset: 64, length: 64 });
    a.fill(0, 8, 4);
    const remote = { address: b.address(512), rkey: b.region.rkey };
    const pieces = [{ offset: 0, length: 8 }];
    a.send(
      { opcode: WrOpcode.SEND_WITH_IMM, immediate: 0x01020304, pieces },
      { opcode: WrOpcode.RDMA_WRITE_WITH_IMM, immediate: 0xfffefdfc, pieces, remote },
    );
    const received = await world.completions(b, 2);
    assert.deepEqual(
      received.map(({ opcode, immediate }) => [opcode, immediate]),
      [
        [WcOpcode.RECV, 0x01020304],
        [WcOpcode.RECV_RDMA_WITH_IMM, 0xfffefdfc],
      ],
    );
    assert.deepEqual(b.memory.slice(512, 520), a.memory.slice(0, 8));
  });

  claim('an RDMA write lands where it was meant to, and the peer hears nothing', async (world) => {
    const { a, b } = world.connected();
    a.fill(0, 9000, 7);
    const remote = { address: b.address(100), rkey: b.region.rkey };
    a.send({ opcode: WrOpcode.RDMA_WRITE, pieces: [{ offset: 0, length: 9000 }], remote });
    const [done] = await world.completions(a, 1);
    assert.deepEqual([done?.status, done?.opcode, done?.bytes], [0, WcOpcode.RDMA_WRITE, 9000]);
    await world.quiet();
    assert.deepEqual(b.memory.slice(100, 9100), a.memory.slice(0, 9000));
    assert.deepEqual([b.memory[99], b.memory[9100]], [0, 0]);
    assert.deepEqual(b.take(), []);
  });

  claim(
    'an RDMA read brings what is there',
    async (world) => {
      const { a, b } = world.connected();
      b.fill(40, 9000, 2);
      const remote = { address: b.address(40), rkey: b.region.rkey };
      a.send({ opcode: WrOpcode.RDMA_READ, pieces: [{ offset: 0, length: 9000 }], remote });
      const [done] = await world.completions(a, 1);
      assert.deepEqual([done?.status, done?.opcode, done?.bytes], [0, WcOpcode.RDMA_READ, 9000]);
      assert.deepEqual(a.memory.slice(0, 9000), b.memory.slice(40, 9040));
    },
    ['rdma-read'],
  );

  claim(
    'atomics change 64 bits, and bring what was there',
    async (world) => {
      const { a, b } = world.connected();
      const view = new DataView(b.memory.buffer, b.memory.byteOffset);
      view.setBigUint64(64, 5n, true);
      const remote = { address: b.address(64), rkey: b.region.rkey };
      const at = (offset: number): { offset: number; length: number }[] => [{ offset, length: 8 }];
      a.send(
        { opcode: WrOpcode.ATOMIC_FETCH_AND_ADD, compareAdd: 7n, pieces: at(0), remote },
        { opcode: WrOpcode.ATOMIC_CMP_AND_SWP, compareAdd: 12n, swap: 99n, pieces: at(8), remote },
        { opcode: WrOpcode.ATOMIC_CMP_AND_SWP, compareAdd: 12n, swap: 1n, pieces: at(16), remote },
      );
      const { FETCH_ADD, COMP_SWAP } = WcOpcode;
      assert.deepEqual(
        (await world.completions(a, 3)).map(({ status, opcode, bytes }) => [status, opcode, bytes]),
        [FETCH_ADD, COMP_SWAP, COMP_SWAP].map((opcode) => [0, opcode, 8]),
      );
      const old = new BigUint64Array(a.memory.buffer, a.memory.byteOffset, 3);
      assert.deepEqual([...old], [5n, 12n, 99n]);
      assert.equal(view.getBigUint64(64, true), 99n);
    },
    ['atomic'],
  );

  claim('requests complete in order, and messages fill receives in order', async (world) => {
    const { a, b } = world.connected();
    const numbers = Array.from({ length: 40 }, (_, i) => i);
    b.receive(...numbers.map((cookie) => ({ offset: cookie * 64, length: 64, cookie })));
    for (const cookie of numbers) a.fill(cookie * 64, 64, cookie);
    a.send(...numbers.map((cookie) => ({ cookie, pieces: [{ offset: cookie * 64, length: 64 }] })));
    const sent = await world.completions(a, 40);
    const received = await world.completions(b, 40);
    assert.deepEqual(
      sent.map(({ cookie }) => cookie),
      numbers,
    );
    assert.deepEqual(
      received.map(({ cookie }) => cookie),
      numbers,
    );
    assert.deepEqual(b.memory.slice(0, 2560), a.memory.slice(0, 2560));
  });

  claim('what core notes in entries stays as it is', async (world) => {
    const { a, b } = world.connected();
    b.receive({ offset: 0, length: 64 });
    a.send({ pieces: [{ offset: 0, length: 8 }] });
    await world.completions(a, 1);
    await world.completions(b, 1);
    const { sendRing } = a.qp;
    const receiveRing = b.qp.receiveRing!;
    const control = sendRing.words[sendRing.wordOf(0) + SQE.CONTROL]!;
    const flags = receiveRing.words[receiveRing.wordOf(0) + RQE.FLAGS];
    assert.deepEqual([control >>> 24, flags], [NOTES.send, NOTES.receive]);
  });

  claim('rings go round', async (world) => {
    const { a, b } = world.connected({ maxWr: 4, minEntries: 8 });
    for (let round = 0; round < 12; round++) {
      b.receive({ offset: 0, length: 64 }, { offset: 64, length: 64 });
      a.fill(0, 64, round);
      a.send({ pieces: [{ offset: 0, length: 64 }] }, { pieces: [{ offset: 0, length: 1 }] });
      assert.deepEqual(
        (await world.completions(b, 2)).map(({ bytes }) => bytes),
        [64, 1],
      );
      assert.deepEqual(b.memory.slice(0, 64), a.memory.slice(0, 64));
      assert.deepEqual(await world.statuses(a, 2), ['SUCCESS', 'SUCCESS']);
    }
  });

  claim('an unsignalled send that succeeds does not complete', async (world) => {
    const { a, b } = world.connected();
    b.receive({ offset: 0, length: 64 }, { offset: 0, length: 64 });
    const pieces = [{ offset: 0, length: 8 }];
    a.send({ pieces, signalled: false, cookie: 1 }, { pieces, cookie: 2 });
    assert.deepEqual(
      (await world.completions(a, 1)).map(({ cookie }) => cookie),
      [2],
    );
    await world.quiet();
    assert.deepEqual(a.take(), []);
    await world.completions(b, 2);
  });

  claim('a message that finds no receive waits for one', async (world) => {
    const { a, b } = world.connected();
    a.send({ pieces: [{ offset: 0, length: 8 }] });
    await world.quiet();
    assert.deepEqual([...a.take(), ...b.take()], []);
    b.receive({ offset: 0, length: 64 });
    assert.deepEqual(await world.statuses(a, 1), ['SUCCESS']);
    assert.deepEqual(await world.statuses(b, 1), ['SUCCESS']);
  });

  claim(
    'a queue pair may be connected to itself',
    async (world) => {
      const { a } = world.ends();
      a.toRtr(a);
      a.toRts();
      a.receive({ offset: 4096, length: 64 });
      a.fill(0, 16, 9);
      a.send({ pieces: [{ offset: 0, length: 16 }] });
      assert.equal((await world.completions(a, 2)).length, 2);
      assert.deepEqual(a.memory.slice(4096, 4112), a.memory.slice(0, 16));
    },
    ['loopback'],
  );
});
