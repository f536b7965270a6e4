// Datagrams to groups: two endpoints have joined, a third one has not.
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { UdEp } from 'dapl';
import { say, Side } from './side.js';

const QKEY = 0x11223344;
const BYTES = 64;
const DATAGRAMS = 20;
const SLOT_BYTES = 256;

export async function multicast(address: string, groups: readonly string[]): Promise<void> {
  const sender = await Side.open({ device: 'rxe0' });
  const receivers = await Promise.all([1, 2, 3].map(() => Side.open({ address })));
  for (const group of groups) await toGroup(group, sender, receivers);
  await Promise.all([sender, ...receivers].map(({ ia }) => ia.close()));
}

function endpoint({ ia, evd, lmr }: Side): UdEp {
  return ia.createUdEndpoint({
    pz: lmr.pz,
    recvEvd: evd,
    requestEvd: evd,
    attributes: { qkey: QKEY },
  });
}

async function toGroup(group: string, sender: Side, receivers: readonly Side[]): Promise<void> {
  const from = endpoint(sender);
  const eps = receivers.map(endpoint);
  for (const [i, ep] of eps.entries()) {
    const { lmr } = receivers[i] as Side;
    for (let slot = 0; slot < DATAGRAMS; slot++) {
      ep.postRecv(lmr.segment(slot * SLOT_BYTES, SLOT_BYTES), slot);
    }
    if (i < 2) ep.joinMulticast(group);
  }
  const to = from.createAddressHandle({ address: group, qpn: UdEp.MULTICAST_QPN, qkey: QKEY });
  for (let i = 0; i < DATAGRAMS; i++) {
    sender.lmr.bytes.fill(i + 1, 0, BYTES);
    from.postSendUd(sender.lmr.segment(0, BYTES), to, i);
    const sent = await sender.next();
    assert.ok(sent.type === 'datagram' && sent.status === 0, inspect(sent, { depth: 1 }));
    for (const side of receivers.slice(0, 2)) {
      const event = await side.next();
      assert.ok(event.type === 'datagram' && event.status === 0);
      const at = event.cookie * SLOT_BYTES + UdEp.GRH_BYTES;
      assert.ok(side.lmr.bytes.subarray(at, at + BYTES).every((byte) => byte === i + 1));
    }
  }
  (eps[0] as UdEp).leaveMulticast(group);
  from.postSendUd(sender.lmr.segment(0, BYTES), to, 1);
  await sender.next();
  await (receivers[1] as Side).next();
  assert.equal((receivers[0] as Side).evd.dequeue(), undefined, 'it has left');
  assert.equal((receivers[2] as Side).evd.dequeue(), undefined, 'it has not joined');
  for (const ep of [from, ...eps]) ep.free();
  say(`${group}: ${DATAGRAMS}`);
}
