// What the software HCA itself costs, both ends in one process over ports that only copy:
// nanoseconds of CPU per packet and per message, without sockets, ICRC or a clock.
//
//   node dist/bench/hca-loop.js [rounds]

import { performance } from 'node:perf_hooks';
import {
  Access,
  type CompletionQueue,
  gidFromIp,
  type MemoryRegion,
  QpState,
  QpType,
  type QueuePair,
  RQE,
  SGE,
  silentLogger,
  SQE,
  WrFlags,
  WrOpcode,
} from '../core/spi/index.js';
import { HcaDriver } from '../providers/hca/index.js';
import { LoopPort } from './loop-port.js';

const MEMORY = 4 << 20;
const BASE = 0x10000;
const RING = 256;
const ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ;

interface End {
  readonly driver: HcaDriver;
  readonly port: LoopPort;
  readonly cq: CompletionQueue;
  readonly region: MemoryRegion;
  readonly qps: QueuePair[];
}

let seed = 1;
const random = { u32: () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) };

function makeEnd(ip: string, qpCount: number): End {
  const port = new LoopPort(gidFromIp(ip));
  const clock = { now: () => performance.now() * 1000 };
  const driver = new HcaDriver({
    name: ip,
    port,
    clock,
    random,
    logger: silentLogger,
    requestPump: () => undefined,
  });
  const { device } = driver;
  const pd = device.createProtectionDomain();
  const ignore = (): void => undefined;
  const cq = device.createCompletionQueue({
    minEntries: 2 * RING * qpCount,
    onNotify: ignore,
    onEvent: ignore,
  });
  const region = pd.registerMemory(new Uint8Array(device.allocate(MEMORY)), ALL, BigInt(BASE));
  const qps = Array.from({ length: qpCount }, () =>
    device.createQueuePair({
      type: QpType.RC,
      pd,
      sendCq: cq,
      receiveCq: cq,
      maxSendWr: RING,
      maxReceiveWr: RING,
      maxSendSge: 1,
      maxReceiveSge: 1,
      maxInlineBytes: 0,
      context: 0,
      onEvent: ignore,
    }),
  );
  return { driver, port, cq, region, qps };
}

function connect(from: End, to: End): void {
  for (const [i, qp] of from.qps.entries()) {
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: ALL });
    qp.modify({
      state: QpState.RTR,
      addressVector: { gid: to.port.gids[0]!, localGidIndex: 0 },
      pathMtuBytes: 4096,
      destinationQpn: to.qps[i]!.qpn,
      receivePsn: 0,
      maxDestRdAtomic: 4,
      minRnrTimer: 1,
    });
    qp.modify({
      state: QpState.RTS,
      sendPsn: 0,
      timeout: 16,
      retryCount: 7,
      rnrRetryCount: 7,
      maxRdAtomic: 4,
    });
  }
}

function writeSend(qp: QueuePair, end: End, peer: End, opcode: number, length: number): void {
  const { sendRing: ring } = qp;
  const at = ring.wordOf(ring.producer);
  const { words } = ring;
  words[at + SQE.CONTROL] = opcode | (WrFlags.SIGNALED << 8) | (1 << 16);
  words[at + SQE.REMOTE_ADDRESS_LO] = BASE;
  words[at + SQE.REMOTE_ADDRESS_HI] = 0;
  words[at + SQE.RKEY] = peer.region.rkey;
  words[at + SQE.SEGMENTS + SGE.ADDRESS_LO] = BASE;
  words[at + SQE.SEGMENTS + SGE.ADDRESS_HI] = 0;
  words[at + SQE.SEGMENTS + SGE.LENGTH] = length;
  words[at + SQE.SEGMENTS + SGE.LKEY] = end.region.lkey;
  ring.producer += 1;
}

function writeReceive(qp: QueuePair, end: End, length: number): void {
  const ring = qp.receiveRing!;
  const at = ring.wordOf(ring.producer);
  const { words } = ring;
  words[at + RQE.NUM_SGE] = 1;
  words[at + RQE.SEGMENTS + SGE.ADDRESS_LO] = BASE;
  words[at + RQE.SEGMENTS + SGE.LENGTH] = length;
  words[at + RQE.SEGMENTS + SGE.LKEY] = end.region.lkey;
  ring.producer += 1;
}

function drain(cq: CompletionQueue): number {
  const count = cq.poll();
  const { ring } = cq;
  for (let i = 0; i < count; i++) {
    if ((ring.words[ring.wordOf(ring.consumer + i)]! & 0xff) !== 0) throw new Error('failed');
  }
  ring.consumer += count;
  return count;
}

interface Case {
  readonly name: string;
  readonly opcode: number;
  readonly bytes: number;
  /** Messages in flight on each queue pair. */
  readonly depth: number;
  readonly qps: number;
  readonly messages: number;
}

/** Nanoseconds a message, both ends together. */
function run(test: Case): { message: number; packet: number } {
  const a = makeEnd('10.0.0.1', test.qps);
  const b = makeEnd('10.0.0.2', test.qps);
  a.port.peer = b.port;
  b.port.peer = a.port;
  connect(a, b);
  connect(b, a);
  const receives = test.opcode === WrOpcode.SEND;
  const send = (rounds: number): void => {
    for (let round = 0; round < rounds; round++) {
      for (let q = 0; q < test.qps; q++) {
        const qpA = a.qps[q]!;
        const qpB = b.qps[q]!;
        for (let i = 0; i < test.depth; i++) {
          if (receives) writeReceive(qpB, b, test.bytes);
          writeSend(qpA, a, b, test.opcode, test.bytes);
        }
        qpA.ringSendDoorbell();
      }
      for (let done = 0; done < test.depth * test.qps;) {
        a.driver.progress();
        b.driver.progress();
        done += drain(a.cq);
        drain(b.cq);
      }
    }
  };
  const rounds = Math.ceil(test.messages / (test.depth * test.qps));
  send(Math.ceil(rounds / 4));
  const packets = a.port.counters.sentPackets + b.port.counters.sentPackets;
  // CPU time, not elapsed: the figure is the same on a busy machine.
  const start = process.cpuUsage();
  send(rounds);
  const used = process.cpuUsage(start);
  const ns = (used.user + used.system) * 1e3;
  const sent = a.port.counters.sentPackets + b.port.counters.sentPackets - packets;
  return { message: ns / (rounds * test.depth * test.qps), packet: ns / sent };
}

const scale = Number(process.argv[2] ?? 1);
const one = { depth: 64, qps: 1, messages: 400_000 * scale };
const cases: readonly Case[] = [
  { ...one, name: 'SEND 64 B, 64 in flight', opcode: WrOpcode.SEND, bytes: 64 },
  { ...one, name: 'SEND 64 B, 1 in flight', opcode: WrOpcode.SEND, bytes: 64, depth: 1 },
  { ...one, name: 'SEND 64 B, 1000 QPs', opcode: WrOpcode.SEND, bytes: 64, depth: 4, qps: 1000 },
  { ...one, name: 'WRITE 64 B', opcode: WrOpcode.RDMA_WRITE, bytes: 64 },
  { ...one, name: 'READ 64 B', opcode: WrOpcode.RDMA_READ, bytes: 64, messages: 100_000 * scale },
];
const large = { depth: 4, qps: 1, bytes: 1 << 20, messages: 1000 * scale };
const bulk: readonly Case[] = [
  { ...large, name: 'SEND 1 MiB', opcode: WrOpcode.SEND },
  { ...large, name: 'WRITE 1 MiB', opcode: WrOpcode.RDMA_WRITE },
  { ...large, name: 'READ 1 MiB', opcode: WrOpcode.RDMA_READ },
];

for (const test of cases) {
  const { message, packet } = run(test);
  const rate = (1e3 / message).toFixed(2);
  console.log(
    `${test.name.padEnd(26)} ${message.toFixed(0).padStart(8)} ns/message ` +
      `${packet.toFixed(0).padStart(6)} ns/packet  ${rate} M/s`,
  );
}
for (const test of bulk) {
  const { message, packet } = run(test);
  console.log(
    `${test.name.padEnd(26)} ${message.toFixed(0).padStart(8)} ns/message ` +
      `${packet.toFixed(0).padStart(6)} ns/packet  ${(test.bytes / message).toFixed(1)} GB/s`,
  );
}
