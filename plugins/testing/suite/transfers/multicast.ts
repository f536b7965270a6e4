/** Datagrams to multicast groups: each member gets one copy, and nobody else does. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { CompletionFlags, DatDtoStatus, type Ia, nameOf, UdEp, type UdEpAttributes } from 'dapl';
import { type Claim, group } from '../behaviour.js';
import { type Side, side } from './datagram-scene.js';
import type { CompliancePair } from '../fixture.js';
import { mtuBytes, refuses, settle } from '../peer.js';
import { PATIENCE_MS } from '../pace.js';

const { GRH_BYTES, MULTICAST_QPN } = UdEp;
const SLOT_BYTES = 256;
const UD_SEND_ONLY = 0x64;
/** Offset in the BTH (IBTA 9.2). */
const DESTINATION_QPN = 5;

/** Creates an endpoint with receives that has joined the group. */
function member(ia: Ia, address: string, attributes: Partial<UdEpAttributes> = {}): Side {
  const made = side(ia, attributes);
  for (let slot = 0; slot < 8; slot++) receive(made, slot);
  made.ep.joinMulticast(address);
  return made;
}

function receive({ ep, lmr }: Side, slot: number): void {
  ep.postRecv(lmr.segment(slot * SLOT_BYTES, SLOT_BYTES), slot);
}

/** A group of the pair's family that nothing else uses: RFC 2365 6.2, RFC 4291 2.7. */
function freshGroup({ passiveAddress }: CompliancePair): string {
  if (!passiveAddress.includes(':')) {
    return `239.${randomInt(64)}.${randomInt(256)}.${randomInt(1, 255)}`;
  }
  return `ff15::${randomInt(1, 0xffff).toString(16)}:${randomInt(1, 0xffff).toString(16)}`;
}

/** Returns a function that sends a byte to a group and waits for its completion. */
function teller(sender: Side): (to: string, byte: number, qkey?: number) => Promise<void> {
  return async (to, byte, qkey = sender.ep.attributes.qkey) => {
    const handle = sender.ep.createAddressHandle({ address: to, qpn: MULTICAST_QPN, qkey });
    sender.lmr.bytes[SLOT_BYTES * 9] = byte;
    sender.ep.postSendUd(sender.lmr.segment(SLOT_BYTES * 9, 1), handle, 1000 + byte);
    assert.equal((await next(sender)).cookie, 1000 + byte);
    handle.free();
  };
}

interface Came {
  readonly cookie: number;
  readonly lengthBytes: number;
  readonly qpn: number | undefined;
  readonly address: string | undefined;
  readonly byte: number | undefined;
}

async function next({ evd, lmr }: Side): Promise<Came> {
  const { event } = await evd.wait({ timeoutMs: PATIENCE_MS });
  assert.ok(event.type === 'datagram', event.type);
  assert.equal(nameOf(DatDtoStatus, event.status), 'SUCCESS');
  const { cookie, transferredLength: lengthBytes, source } = event;
  const byte = lmr.bytes[cookie * SLOT_BYTES + GRH_BYTES];
  return { cookie, lengthBytes, qpn: source?.qpn, address: source?.address, byte };
}

/** The bytes of this number of datagrams. */
async function bytesOf(hearer: Side, count: number): Promise<number[]> {
  const bytes = [];
  for (let i = 0; i < count; i++) bytes.push((await next(hearer)).byte ?? -1);
  return bytes;
}

export const multicast = group('Datagrams to groups', (plain) => {
  const claim: Claim = (name, run) => plain(name, run, ['ud', 'multicast']);

  claim('a member hears the group and learns from whom; others do not hear it', async (pair) => {
    const to = freshGroup(pair);
    const hearer = member(pair.passive, to);
    const outside = side(pair.passive);
    receive(outside, 0);
    const sender = side(pair.active);
    await teller(sender)(to, 7);
    const { lengthBytes, qpn, address, byte } = await next(hearer);
    assert.deepEqual([lengthBytes, qpn, byte], [GRH_BYTES + 1, sender.ep.qpn, 7]);
    assert.equal(address, pair.active.address);
    await settle(pair);
    assert.equal(outside.evd.dequeue(), undefined);
    assert.equal(hearer.evd.dequeue(), undefined, 'it comes once');
  });

  claim('every member has its copy, on either adapter, and a sender its own', async (pair) => {
    const to = freshGroup(pair);
    const sender = member(pair.active, to);
    const members = [pair.active, pair.passive, pair.passive].map((ia) => member(ia, to));
    const handle = sender.ep.createAddressHandle({ address: to, qpn: MULTICAST_QPN });
    sender.lmr.bytes[SLOT_BYTES * 9] = 5;
    const sent = sender.lmr.segment(SLOT_BYTES * 9, 1);
    sender.ep.postSendUd(sent, handle, 1000, CompletionFlags.SUPPRESS);
    for (const each of [sender, ...members]) {
      const { byte, qpn } = await next(each);
      assert.deepEqual([byte, qpn], [5, sender.ep.qpn]);
    }
    await settle(pair);
    for (const each of [sender, ...members]) assert.equal(each.evd.dequeue(), undefined);
  });

  claim('joining twice is once; what has left hears no more; it may join again', async (pair) => {
    const to = freshGroup(pair);
    const [hearer, stays] = [member(pair.passive, to), member(pair.passive, to)];
    const tell = teller(side(pair.active));
    hearer.ep.joinMulticast(to);
    await tell(to, 1);
    assert.deepEqual([await bytesOf(hearer, 1), await bytesOf(stays, 1)], [[1], [1]]);
    hearer.ep.leaveMulticast(to);
    hearer.ep.leaveMulticast(to);
    await tell(to, 2);
    assert.deepEqual(await bytesOf(stays, 1), [2]);
    hearer.ep.joinMulticast(to);
    await tell(to, 3);
    assert.deepEqual([await bytesOf(hearer, 1), await bytesOf(stays, 1)], [[3], [3]]);
    await settle(pair);
    assert.equal(hearer.evd.dequeue(), undefined);
  });

  claim('the last member leaves the group, and a new one hears it', async (pair) => {
    const to = freshGroup(pair);
    const tell = teller(side(pair.active));
    for (let round = 0; round < 3; round++) {
      const hearer = member(pair.passive, to);
      await tell(to, round);
      assert.deepEqual(await bytesOf(hearer, 1), [round]);
      if (round === 1) hearer.ep.leaveMulticast(to);
      else hearer.ep.free();
      await tell(to, 100 + round);
      await settle(pair);
      assert.equal(hearer.evd.dequeue(), undefined);
    }
  });

  claim('groups are told apart; an endpoint may be in several', async (pair) => {
    const [first, second] = [freshGroup(pair), freshGroup(pair)];
    const [one, both] = [member(pair.passive, first), member(pair.passive, first)];
    both.ep.joinMulticast(second);
    const tell = teller(side(pair.active));
    await tell(second, 2);
    assert.deepEqual(await bytesOf(both, 1), [2]);
    await tell(first, 1);
    assert.deepEqual([await bytesOf(both, 1), await bytesOf(one, 1)], [[1], [1]]);
    both.ep.leaveMulticast(first);
    await tell(second, 3);
    assert.deepEqual(await bytesOf(both, 1), [3]);
    await settle(pair);
    assert.equal(one.evd.dequeue(), undefined);
  });

  claim(
    'a member with another Q_Key, or without a receive, is the only one to miss it',
    async (pair) => {
      const to = freshGroup(pair);
      const qkey = 0x1111;
      const other = member(pair.passive, to, { qkey: 0x2222 });
      const poor = side(pair.passive, { qkey });
      poor.ep.joinMulticast(to);
      const hearer = member(pair.passive, to, { qkey });
      const tell = teller(side(pair.active));
      await tell(to, 1, qkey);
      assert.deepEqual(await bytesOf(hearer, 1), [1]);
      await settle(pair);
      assert.deepEqual([other.evd.dequeue(), poor.evd.dequeue()], [undefined, undefined]);
      receive(poor, 3);
      await tell(to, 2, qkey);
      assert.deepEqual([await bytesOf(hearer, 1), await bytesOf(poor, 1)], [[2], [2]]);
    },
  );

  claim('a datagram to a group has any size from 0 to the MTU, and no more', async (pair) => {
    const to = freshGroup(pair);
    const hearer = side(pair.passive);
    hearer.ep.joinMulticast(to);
    const { ep, lmr } = side(pair.active);
    const handle = ep.createAddressHandle({ address: to, qpn: MULTICAST_QPN });
    const most = ep.maxDatagramBytes;
    assert.equal(most, mtuBytes(pair.active));
    for (const size of [0, 1, 3, most]) {
      hearer.ep.postRecv(hearer.lmr.segment(0, GRH_BYTES + most), size);
      ep.postSendUd(lmr.segment(0, size), handle, 0, CompletionFlags.SUPPRESS);
      const { cookie, lengthBytes } = await next(hearer);
      assert.deepEqual([cookie, lengthBytes], [size, GRH_BYTES + size]);
    }
    refuses(() => ep.postSendUd(lmr.segment(0, most + 1), handle), 'DAT_LENGTH_ERROR');
  });

  claim('what is no group is refused by its name, and the endpoint goes on', async (pair) => {
    const { ep } = side(pair.passive);
    const wrong = {
      [pair.passiveAddress]: 'DAT_INVALID_PARAMETER',
      'no address': 'DAT_INVALID_ADDRESS',
    };
    for (const [address, code] of Object.entries(wrong)) {
      assert.throws(
        () => ep.joinMulticast(address),
        (error: Error & { code?: string }) =>
          error.code === code && error.message.includes(address),
        `${address} is ${code}`,
      );
    }
    const to = freshGroup(pair);
    const hearer = member(pair.passive, to);
    await teller(side(pair.active))(to, 1);
    assert.deepEqual(await bytesOf(hearer, 1), [1]);
  });

  plain(
    'a datagram to a group that is lost is lost alone: later ones come',
    async (pair) => {
      const to = freshGroup(pair);
      const hearer = member(pair.passive, to);
      const tell = teller(side(pair.active));
      const fault = pair.addFault!({
        from: 'active',
        match: (packet) =>
          packet[0] === UD_SEND_ONLY &&
          packet.subarray(DESTINATION_QPN, DESTINATION_QPN + 3).every((byte) => byte === 0xff),
        action: 'drop',
      });
      for (const byte of [1, 2, 3]) await tell(to, byte);
      assert.deepEqual(await bytesOf(hearer, 2), [2, 3]);
      assert.equal(fault.hits, 1);
    },
    ['ud', 'multicast', 'scripted-faults'],
  );

  claim(
    'closing the adapter ends its memberships, with members of others hearing on',
    async (pair) => {
      const to = freshGroup(pair);
      const [gone, hearer] = [member(pair.active, to), member(pair.passive, to)];
      const sender = side(pair.passive);
      await teller(sender)(to, 1);
      assert.deepEqual([await bytesOf(gone, 1), await bytesOf(hearer, 1)], [[1], [1]]);
      await pair.active.close();
      await teller(sender)(to, 2);
      assert.deepEqual(await bytesOf(hearer, 1), [2]);
    },
  );
});
