/** Every operation of UC, in every length class: no endpoint of DAT has it, devices do. */
import assert from 'node:assert/strict';
import { type Fabric, MockNode } from 'dapl/providers/mock';
import {
  Access,
  type CompletionQueue,
  gidFromIp,
  type MemoryRegion,
  QpState,
  QpType,
  type QueuePair,
  WcStatus,
  WrOpcode,
} from '../../core/spi/index.js';
import { drain } from '../support/completions.js';
import { postReceive, postSend } from '../support/hca-pair.js';

const MTU = 1024;
const MEMORY_BYTES = 1 << 16;
const BASE = 0x7f00_0000_1000n;
const ACCESS = Access.LOCAL_WRITE | Access.REMOTE_WRITE;
const { SEND, SEND_WITH_IMM, RDMA_WRITE, RDMA_WRITE_WITH_IMM } = WrOpcode;

interface End {
  readonly node: MockNode;
  readonly cq: CompletionQueue;
  readonly region: MemoryRegion;
  readonly base: bigint;
  readonly qp: QueuePair;
}

/** Less than a packet, a packet, two, and more. */
export async function playUc(fabric: Fabric, addresses: readonly [string, string]): Promise<void> {
  const [from, to] = addresses.map((address) => open(fabric, address)) as [End, End];
  bring(from, to, addresses[1]);
  bring(to, from, addresses[0]);
  let receives = 0;
  for (const length of [0, 100, MTU, 2 * MTU, 5000]) {
    for (const opcode of [SEND, SEND_WITH_IMM, RDMA_WRITE, RDMA_WRITE_WITH_IMM]) {
      if (opcode !== RDMA_WRITE) {
        postReceive(to, to.qp, [{ offset: 0, length: 8192 }]);
        receives++;
      }
      postSend(from, from.qp, {
        opcode,
        segments: [{ offset: 0, length }],
        remoteAddress: BASE,
        rkey: to.region.rkey,
        immediate: 0x01020304,
      });
    }
  }
  await fabric.run({ forUs: 10_000 });
  const statuses = drain(to.cq).map(({ status }) => status);
  assert.deepEqual(statuses, new Array(receives).fill(WcStatus.SUCCESS));
  await Promise.all([from.node.close(), to.node.close()]);
}

function open(fabric: Fabric, address: string): End {
  const node = new MockNode(fabric, { addresses: [address] });
  const { device } = node;
  const pd = device.createProtectionDomain();
  const nothing = (): void => undefined;
  const cq = device.createCompletionQueue({ minEntries: 64, onNotify: nothing, onEvent: nothing });
  const region = pd.registerMemory(new Uint8Array(MEMORY_BYTES), ACCESS, BASE);
  const qp = device.createQueuePair({
    type: QpType.UC,
    pd,
    sendCq: cq,
    receiveCq: cq,
    maxSendWr: 32,
    maxReceiveWr: 32,
    maxSendSge: 1,
    maxReceiveSge: 1,
    maxInlineBytes: 0,
    context: 0,
    onEvent: nothing,
  });
  return { node, cq, region, base: BASE, qp };
}

function bring({ qp }: End, peer: End, address: string): void {
  qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: ACCESS });
  qp.modify({
    state: QpState.RTR,
    addressVector: { gid: gidFromIp(address), localGidIndex: 0 },
    pathMtuBytes: MTU,
    destinationQpn: peer.qp.qpn,
    receivePsn: 1,
  });
  qp.modify({ state: QpState.RTS, sendPsn: 1 });
}
