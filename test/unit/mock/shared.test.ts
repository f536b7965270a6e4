/** Pretended processes that share an address of a fabric: numbers, claims, packets that stray. */
import assert from 'node:assert/strict';
import { type Ia, openIa } from '../../../core/index.js';
import { connect, type Connection, listen } from '../../../core/flow/index.js';
import { DEVICE, MAD, QpType } from '../../../core/spi/index.js';
import { icrcPacket, writeIcrc } from '../../../providers/hca/wire/icrc.js';
import { Fabric, mock, type MockNode } from '../../../providers/mock/index.js';
import {
  ICRC_BYTES,
  type TappedPacket,
  type WirePacket,
} from '../../../providers/mock/wire-packet.js';
import { drain, texts } from '../../support/fake-endpoints.js';
import { openMock } from './container.js';

const SHARED = '10.0.0.1';
const PEER = '10.0.0.2';
const FLOW = { keepAliveMs: 0, receives: { buffers: 4, bufferBytes: 4096 } };

class Scene {
  readonly fabric = new Fabric({ seed: 25, autoRun: true });
  private readonly opened: Ia[] = [];
  private readonly byProcess = new Map<string, Ia>();

  async open(process: string): Promise<Ia> {
    const ia = await openIa(mock({ fabric: this.fabric, address: SHARED, process }));
    this.opened.push(ia);
    this.byProcess.set(process, ia);
    return ia;
  }

  async openPeer(): Promise<Ia> {
    const ia = await openIa(mock({ fabric: this.fabric, address: PEER }));
    this.opened.push(ia);
    return ia;
  }

  ia(process: string): Ia {
    const ia = this.byProcess.get(process);
    assert.ok(ia, process);
    return ia;
  }

  node(process: string): MockNode {
    const node = this.fabric.node(SHARED, process);
    assert.ok(node, process);
    return node;
  }

  /** @returns what the process's socket is, as the others have it */
  socket(process: string) {
    const [socket] = this.node(process).group?.sockets ?? [];
    assert.ok(socket);
    return socket;
  }

  slot(process: string): number {
    const slot = this.node(process).device.share?.slot;
    assert.ok(slot !== undefined);
    return slot;
  }

  async close(): Promise<void> {
    for (const ia of this.opened) await ia.close('abrupt');
    await this.fabric.run({ untilIdle: true });
    const { usage } = this.fabric.systemOf([SHARED]);
    assert.deepEqual(usage, { files: 0, sockets: 0, names: 0 });
    assert.equal(this.fabric.pool.inUse, 0);
  }
}

async function echo(conn: Connection): Promise<void> {
  try {
    for await (const message of conn) await conn.send(message.bytes);
  } catch {
    // The other end says so.
  }
}

async function echoOn(ia: Ia, port: number): Promise<void> {
  const listener = await listen(ia, { ...FLOW, port });
  void (async () => {
    for await (const conn of listener) void echo(conn);
  })();
}

async function exchange(conn: Connection, lengthBytes: number): Promise<void> {
  const bytes = new Uint8Array(lengthBytes).fill(lengthBytes & 0xff);
  await conn.send(bytes);
  const { bytes: back } = await conn.receive();
  assert.deepEqual(Buffer.from(back), Buffer.from(bytes));
}

/** A copy for another slot, with an ICRC that is right. */
function readdressed(fabric: Fabric, packet: TappedPacket, slot: number): WirePacket {
  const twin = fabric.pool.copy(packet as WirePacket);
  const { buffer, view, length, flow } = twin;
  view.setUint8(5, slot);
  const end = length - ICRC_BYTES;
  writeIcrc(view, end, icrcPacket(flow.header.begin(length), buffer, 0, end));
  return twin;
}

describe('mock: processes that share an address', () => {
  let scene: Scene;
  beforeEach(() => {
    scene = new Scene();
  });

  it('have one node GUID, and numbers of their own slot each', async () => {
    const { fabric } = scene;
    const options = { fabric, address: SHARED };
    const containers = [];
    for (const process of ['a', 'b', 'c']) containers.push(await openMock({ ...options, process }));
    for (const [slot, container] of containers.entries()) {
      const device = container.resolve(DEVICE);
      assert.equal(device.share?.slot, slot);
      assert.equal(device.share.nodeGuid, containers[0]?.resolve(DEVICE).share?.nodeGuid);
      const pd = device.createProtectionDomain();
      const handlers = { onNotify: () => undefined, onEvent: () => undefined };
      const cq = device.createCompletionQueue({ minEntries: 4, ...handlers });
      const queue = { pd, maxWr: 4, maxSge: 1, onEvent: () => undefined };
      const qpns = Array.from({ length: 20 }, (_, context) => {
        const qp = device.createQueuePair({
          type: QpType.RC,
          pd,
          sendCq: cq,
          receiveCq: cq,
          maxSendWr: 4,
          maxReceiveWr: 4,
          maxSendSge: 1,
          maxReceiveSge: 1,
          maxInlineBytes: 0,
          context,
          onEvent: () => undefined,
        });
        return qp.qpn;
      });
      assert.deepEqual([...new Set(qpns.map((qpn) => qpn >>> 16))], [slot]);
      assert.equal(new Set(qpns).size, qpns.length);
      assert.ok(qpns.every((qpn) => qpn >= 0x10));
      assert.equal((device.createSharedReceiveQueue?.(queue).srqn ?? -1) >>> 16, slot);
      const agent = container.resolve(MAD).registerAgent({
        managementClass: 0x09 + slot,
        classVersion: 1,
        methods: [],
        onReceive: () => undefined,
        onSend: () => undefined,
      });
      assert.equal(agent.hiTid >>> 24, slot);
    }
    for (const container of containers) await container.resolve(DEVICE).close();
    await scene.close();
  });

  it('name themselves to peers by ids of their slot, both ways', async () => {
    const ids: number[] = [];
    scene.fabric.tap = (event, { view, flow }) => {
      const isCm = (view.getUint32(4) & 0xffffff) === 1 && view.getUint8(21) === 7;
      if (event === 'sent' && isCm && flow.from === SHARED) ids.push(view.getUint32(44) >>> 24);
    };
    const peer = await scene.openPeer();
    await scene.open('a');
    const b = await scene.open('b');
    await echoOn(peer, 8000);
    await echoOn(b, 7000);
    await exchange(await connect(b, { ...FLOW, address: PEER, port: 8000 }), 100);
    await exchange(await connect(peer, { ...FLOW, address: SHARED, port: 7000 }), 100);
    assert.ok(ids.length >= 3);
    assert.deepEqual([...new Set(ids)], [scene.slot('b')]);
    await scene.close();
  });

  it('take a request where it is listened for, whoever of them has QP1', async () => {
    const peer = await scene.openPeer();
    const ias = [await scene.open('a'), await scene.open('b'), await scene.open('c')];
    for (const [i, ia] of ias.entries()) await echoOn(ia, 7000 + i);
    for (const port of [7000, 7001, 7002]) {
      await exchange(await connect(peer, { ...FLOW, address: SHARED, port }), 64);
    }
    // Two requests came to the first of them that were for the others.
    assert.equal(scene.node('a').device.counters.misdelivered, 2);
    assert.equal(scene.node('b').device.counters.misdelivered, 0);
    const none = connect(peer, { ...FLOW, address: SHARED, port: 7009 });
    await assert.rejects(none, { code: 'DAT_CONN_REFUSED' });
    await scene.close();
  });

  it('listen in one place only, until that process closes or is killed', async () => {
    const [a, b] = [await scene.open('a'), await scene.open('b')];
    await listen(a, { ...FLOW, port: 7000 });
    await assert.rejects(listen(b, { ...FLOW, port: 7000 }), (error: Error) => {
      assert.match(error.message, /another process of this shared device \(slot 0\)/);
      return true;
    });
    const first = await listen(b, { ...FLOW, port: 7001 });
    await assert.rejects(listen(a, { ...FLOW, port: 7001 }));
    await first.close();
    await (await listen(a, { ...FLOW, port: 7001 })).close();
    scene.node('a').kill();
    await scene.fabric.run({ forUs: 1_000_000 });
    await listen(b, { ...FLOW, port: 7000 });
    await scene.close();
  });

  it('tell the peers of one that was killed, though one that tells is killed, too', async () => {
    const { fabric } = scene;
    const peer = await scene.openPeer();
    for (const process of ['a', 'b', 'c']) await scene.open(process);
    await echoOn(scene.ia('b'), 7001);
    const conn = await connect(peer, { ...FLOW, address: SHARED, port: 7001 });
    await exchange(conn, 64);
    // The first DREQ is lost, and the broker is gone before it repeats it.
    fabric.setLink({ from: SHARED, to: PEER }, { lossPercent: 100 });
    scene.node('b').kill();
    await fabric.run({ forUs: 100_000 });
    scene.node('a').kill();
    fabric.setLink({ from: SHARED, to: PEER }, { lossPercent: 0 });
    await fabric.run({ forUs: 3_000_000 });
    await assert.rejects(conn.receive(), { code: 'DAT_CONN_ENDED' });
    await scene.close();
  });

  for (const [wrong, right] of [
    ['a', 'b'],
    ['b', 'a'],
    ['b', 'c'],
  ] as const) {
    it(`hand over what is for another: all of ${right} comes to ${wrong}`, async () => {
      const peer = await scene.openPeer();
      await scene.open('a');
      await scene.open('b');
      await scene.open('c');
      await echoOn(scene.ia(right), 7000);
      const conn = await connect(peer, { ...FLOW, address: SHARED, port: 7000 });
      await exchange(conn, 1000);
      const before = scene.node(wrong).device.counters.misdelivered;
      const [from, to] = [scene.socket(right), scene.socket(wrong)];
      from.deliver = (packet) => to.deliver(packet);
      for (const lengthBytes of [1, 1000, 4000]) await exchange(conn, lengthBytes);
      const { misdelivered, misdeliveredDrops, drops } = scene.node(wrong).device.counters;
      assert.ok(misdelivered - before >= 6, `${misdelivered - before} misdelivered`);
      assert.deepEqual([misdeliveredDrops, drops.unknownQpn], [0, 0]);
      await scene.close();
    });
  }

  it('one whose slot is not its own any more loses the device; the others go on', async () => {
    const peer = await scene.openPeer();
    await scene.open('a');
    const lost = await scene.open('b');
    for (const process of ['a', 'b']) await echoOn(scene.ia(process), 7000 + scene.slot(process));
    const conns = [];
    for (const slot of [0, 1]) {
      conns.push(await connect(peer, { ...FLOW, address: SHARED, port: 7000 + slot }));
    }
    const host = scene.node('b').group?.host;
    assert.ok(host);
    // It says what is no message, and so is cut off; and nothing shows any more that it lives.
    host.system.lives.delete(1);
    for (const link of [...host.links]) link.send(Uint8Array.of(1), []);
    await scene.fabric.run({ forUs: 1_000_000 });
    assert.equal(texts(drain(lost.asyncEvd))[0], 'ASYNC_IA_CATASTROPHIC');
    await exchange(conns[0]!, 100);
    await conns[1]!.closed.catch(() => undefined);
    await echoOn(await scene.open('c'), 7001);
    await exchange(await connect(peer, { ...FLOW, address: SHARED, port: 7001 }), 100);
    await scene.close();
  });

  it('count what is for a slot that no process has', async () => {
    const peer = await scene.openPeer();
    const [a] = [await scene.open('a'), await scene.open('b')];
    await echoOn(a, 7000);
    const conn = await connect(peer, { ...FLOW, address: SHARED, port: 7000 });
    const socket = scene.socket('a');
    const deliver = socket.deliver.bind(socket);
    const { fabric } = scene;
    let lost = 0;
    fabric.tap = (event, packet) => {
      if (event !== 'delivered' || packet.flow.to !== SHARED || lost > 0) return;
      lost++;
      deliver(readdressed(fabric, packet, 9));
    };
    await exchange(conn, 64);
    assert.equal(lost, 1);
    assert.equal(scene.node('a').device.counters.misdeliveredDrops, 1);
    await scene.close();
  });

  it('exclude a device of the same address that is not shared, both ways', async () => {
    const { fabric } = scene;
    const alone = await openIa(mock({ fabric, address: SHARED }));
    await assert.rejects(
      scene.open('a'),
      /10\.0\.0\.1 is in use on this fabric, and is not shared/,
    );
    await alone.close();
    await scene.open('a');
    await assert.rejects(openIa(mock({ fabric, address: SHARED })), /10\.0\.0\.1 is in use/);
    await scene.close();
  });
});
