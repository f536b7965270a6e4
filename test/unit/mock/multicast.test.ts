import assert from 'node:assert/strict';
import {
  Access,
  type CompletionQueue,
  gidFromIp,
  type MemoryRegion,
  type ProtectionDomain,
  QpState,
  QpType,
  type QueuePair,
  WcFlags,
  WcStatus,
  WrOpcode,
} from '../../../core/spi/index.js';
import { Fabric, MockNode } from '../../../providers/mock/index.js';
import { drain, postReceive, postSend } from '../../support/hca-pair.js';

const QKEY = 0x1234;
const QPN_MULTICAST = 0xffffff;
const GROUP = gidFromIp('239.1.2.3');

/** A node with datagram queue pairs on one completion queue. */
class Listener {
  readonly node: MockNode;
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly bytes = new Uint8Array(65536);
  readonly base = 0x10000n;
  readonly region: MemoryRegion;

  constructor(fabric: Fabric, address: string) {
    this.node = new MockNode(fabric, { addresses: [address] });
    const { device } = this.node;
    this.pd = device.createProtectionDomain();
    this.region = this.pd.registerMemory(this.bytes, Access.LOCAL_WRITE, this.base);
    const nothing = (): void => undefined;
    this.cq = device.createCompletionQueue({ minEntries: 64, onNotify: nothing, onEvent: nothing });
  }

  queuePair(context: number, qkey = QKEY): QueuePair {
    const qp = this.node.device.createQueuePair({
      type: QpType.UD,
      pd: this.pd,
      sendCq: this.cq,
      receiveCq: this.cq,
      maxSendWr: 16,
      maxReceiveWr: 16,
      maxSendSge: 1,
      maxReceiveSge: 1,
      maxInlineBytes: 0,
      context,
      onEvent: () => undefined,
    });
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, qkey });
    qp.modify({ state: QpState.RTR });
    qp.modify({ state: QpState.RTS, sendPsn: 0 });
    return qp;
  }

  /** A member of the group, with receives. */
  member(context: number, qkey = QKEY): QueuePair {
    const qp = this.queuePair(context, qkey);
    for (let i = 0; i < 4; i++) postReceive(this, qp, [{ offset: context * 512, length: 512 }]);
    qp.attachMulticast!(GROUP);
    return qp;
  }

  send(qp: QueuePair, remoteQpn = QPN_MULTICAST, gid = GROUP): void {
    const address = { gid, localGidIndex: 0 };
    const addressHandle = this.node.device.createAddressHandle(this.pd, address).handle;
    postSend(this, qp, {
      opcode: WrOpcode.SEND,
      segments: [{ offset: 0, length: 100 }],
      addressHandle,
      remoteQpn,
      remoteQkey: QKEY,
    });
  }

  /** Contexts of the queue pairs that have received. */
  received(): number[] {
    return drain(this.cq)
      .filter((c) => c.opcode === 128)
      .map((c) => c.context);
  }
}

function three(seed = 1): { fabric: Fabric; a: Listener; b: Listener; c: Listener } {
  const fabric = new Fabric({ seed });
  const [a, b, c] = [1, 2, 3].map((n) => new Listener(fabric, `10.0.0.${n}`));
  return { fabric, a: a!, b: b!, c: c! };
}

describe('Multicast', () => {
  it('reaches every member once on any node, the sender’s own too, and nobody else', async () => {
    const { fabric, a, b, c } = three();
    a.member(1);
    b.member(2);
    b.member(3);
    b.queuePair(4);
    c.queuePair(5);
    const sender = a.queuePair(6);
    a.bytes.fill(0x5a, 0, 100);
    a.send(sender);
    await fabric.run({ untilIdle: true });
    const [own, ...more] = drain(a.cq).filter((each) => each.opcode === 128);
    assert.deepEqual(more, []);
    assert.equal(own?.context, 1);
    const at = drain(b.cq);
    assert.deepEqual(
      at.map((each) => [each.context, each.status, each.byteLength, each.sourceQpn, each.flags]),
      [2, 3].map((context) => [context, WcStatus.SUCCESS, 140, sender.qpn, WcFlags.GRH]),
    );
    for (const context of [2, 3]) {
      const area = b.bytes.subarray(context * 512, context * 512 + 141);
      // Where it came from, and the group that it was sent to.
      assert.deepEqual([...area.subarray(32, 40)], [10, 0, 0, 1, 239, 1, 2, 3]);
      assert.equal(area.indexOf(0, 40), 140);
    }
    assert.deepEqual(c.received(), []);
  });

  it('leaves out the sender’s own copy where that is blocked, and no other', async () => {
    const { fabric, a, b } = three();
    const sender = a.member(1);
    sender.attachMulticast!(GROUP, { loopback: false });
    a.member(2);
    b.member(3);
    b.member(4);
    a.send(sender);
    await fabric.run({ untilIdle: true });
    assert.deepEqual(a.received(), [2]);
    assert.deepEqual(b.received(), [3, 4]);
    b.send(b.queuePair(6));
    await fabric.run({ untilIdle: true });
    assert.deepEqual(a.received(), [1, 2]);
  });

  it('gives nothing to a member that only sends, which must name a group', async () => {
    const { fabric, a, b } = three();
    const sender = a.queuePair(1);
    postReceive(a, sender, [{ offset: 512, length: 512 }]);
    sender.attachMulticast!(GROUP, { sendOnly: true });
    b.member(2);
    a.send(sender);
    await fabric.run({ untilIdle: true });
    assert.deepEqual([a.received(), b.received()], [[], [2]]);
    const noGroup = gidFromIp('10.0.0.2');
    assert.throws(() => sender.attachMulticast!(noGroup, { sendOnly: true }), { code: 'EINVAL' });
  });

  it('asks each member for its own Q_Key, and for a receive', async () => {
    const { fabric, a, b } = three();
    b.member(1, 0x77);
    const poor = b.queuePair(2);
    poor.attachMulticast!(GROUP);
    b.member(3);
    a.send(a.queuePair(4));
    await fabric.run({ untilIdle: true });
    assert.deepEqual(b.received(), [3]);
    const { drops } = b.node.device.counters;
    assert.deepEqual([drops.badQkey, drops.noReceive], [1, 1]);
  });

  it('attached twice is once; detached is not; the group is left by its last', async () => {
    const { fabric, a, b } = three();
    const first = b.member(1);
    first.attachMulticast!(GROUP);
    const second = b.member(2);
    const sender = a.queuePair(3);
    a.send(sender);
    await fabric.run({ untilIdle: true });
    assert.deepEqual(b.received(), [1, 2]);
    first.detachMulticast!(GROUP);
    assert.throws(() => first.detachMulticast!(GROUP), { code: 'EINVAL', message: /not attached/ });
    a.send(sender);
    await fabric.run({ untilIdle: true });
    assert.deepEqual(b.received(), [2]);
    second.destroy();
    const { sent } = fabric.counters;
    a.send(sender);
    await fabric.run({ untilIdle: true });
    assert.equal(fabric.counters.sent, sent, 'there is no member on the wire');
    assert.deepEqual(b.received(), []);
    assert.equal(drain(a.cq).at(-1)?.status, WcStatus.SUCCESS, 'and the sender cannot know');
  });

  it('has a way of its own to each member: one loses it, another has it', async () => {
    const { fabric, a, b, c } = three();
    b.member(1);
    c.member(2);
    fabric.partition(['10.0.0.1'], ['10.0.0.2']);
    a.send(a.queuePair(3));
    await fabric.run({ untilIdle: true });
    assert.deepEqual([b.received(), c.received()], [[], [2]]);
  });

  it('does not reach a queue pair by its number, nor the group by a port’s address', async () => {
    const { fabric, a, b } = three();
    const member = b.member(1);
    const sender = a.queuePair(2);
    a.send(sender, member.qpn);
    a.send(sender, QPN_MULTICAST, b.node.port.gids[0]);
    await fabric.run({ untilIdle: true });
    assert.deepEqual(b.received(), []);
    assert.equal(b.node.device.counters.drops.unknownQpn, 2);
  });

  it('is refused for what is no group, is of another family, or is no datagram queue pair', () => {
    const { a } = three();
    const qp = a.queuePair(1);
    assert.ok(a.node.device.capabilities.has('multicast'));
    assert.throws(() => qp.attachMulticast!(gidFromIp('10.0.0.2')), { code: 'EINVAL' });
    assert.throws(() => qp.attachMulticast!(gidFromIp('ff02::1')), { code: 'ENETUNREACH' });
    qp.destroy();
    assert.throws(() => qp.attachMulticast!(GROUP), { code: 'EINVAL' });
  });

  it('ends with the device: members and packets under way', async () => {
    const { fabric, a, b, c } = three();
    b.member(1);
    a.send(a.queuePair(2));
    fabric.step();
    await b.node.close();
    await fabric.run({ untilIdle: true });
    for (const { node } of [a, c]) await node.close();
    assert.equal(fabric.pool.inUse, 0);
  });
});
