// Datagrams to a group: one process hears, another tells; either may be mckey of rdmacm-utils.
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { DatDtoStatus, nameOf, UdEp } from 'dapl';
import { say } from './say.js';
import { Side, WAIT_MS } from './side.js';

/** As rdma_cm's, whose members are told it when they join. */
const QKEY = 0x01234567;
/** mckey's default length. */
const LENGTH_BYTES = 100;
const SLOT_BYTES = 256;
const DEPTH = 64;
const PAUSE_MS = 100;

/** Joins the group and waits for so many datagrams. */
export async function hear(address: string, group: string, times: number): Promise<void> {
  const { side, ep } = await open(address);
  for (let slot = 0; slot < DEPTH; slot++) receive(side, ep, slot);
  ep.joinMulticast(group);
  say('joined');
  for (let count = 0; count < times; count++) {
    const { event } = await side.evd.wait({ timeoutMs: WAIT_MS });
    assert.equal(event.type, 'datagram');
    assert.equal(nameOf(DatDtoStatus, event.status), 'SUCCESS');
    const length = event.transferredLength - UdEp.GRH_BYTES;
    const at = event.cookie * SLOT_BYTES + UdEp.GRH_BYTES;
    const data = Buffer.from(side.lmr.bytes.subarray(at, at + length));
    say(`heard ${length} bytes from ${event.source?.address}, first ${data[0]}`);
    receive(side, ep, event.cookie);
  }
  ep.leaveMulticast(group);
  ep.free();
  await side.ia.close();
}

/** Sends so many datagrams to the group, without belonging to it. */
export async function tell(address: string, group: string, times: number): Promise<void> {
  const { side, ep } = await open(address);
  const to = ep.createAddressHandle({ address: group, qpn: UdEp.MULTICAST_QPN, qkey: QKEY });
  side.lmr.bytes.fill(0xa5, 0, LENGTH_BYTES);
  for (let count = 0; count < times; count++) {
    ep.postSendUdWithImmediate(side.lmr.segment(0, LENGTH_BYTES), to, count, ep.qpn);
    const { event } = await side.evd.wait({ timeoutMs: WAIT_MS });
    assert.equal(event.type, 'datagram');
    assert.equal(nameOf(DatDtoStatus, event.status), 'SUCCESS');
    await pause(PAUSE_MS);
  }
  say(`told: ${times}`);
  to.free();
  ep.free();
  await side.ia.close();
}

async function open(address: string): Promise<{ side: Side; ep: UdEp }> {
  const side = await Side.open({ address });
  const { evd } = side;
  const attributes = { maxRecvDtos: DEPTH, qkey: QKEY };
  const { pz } = side.lmr;
  return { side, ep: side.ia.createUdEndpoint({ pz, recvEvd: evd, requestEvd: evd, attributes }) };
}

function receive(side: Side, ep: UdEp, slot: number): void {
  ep.postRecv(side.lmr.segment(slot * SLOT_BYTES, SLOT_BYTES), slot);
}
