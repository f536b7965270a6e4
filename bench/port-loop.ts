/**
 * What the packet port can carry by itself, without a protocol: two processes on loopback, the
 * sender kept within the receive buffer by a credit for every so many packets.
 *
 *   node dist/bench/port-loop.js [seconds]
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { performance } from 'node:perf_hooks';
import { crc32 } from 'node:zlib';
import { PLACE, RX, TX, TX_SEGMENT, gidFromIp } from '../core/spi/index.js';
import { loadNativeAddon } from '../providers/softroce/port/native-addon.js';
import { openNativePort } from '../providers/softroce/port/native-port.js';
import { openDgramPort } from '../providers/softroce/dgram/port.js';
import type { SocketPort } from '../providers/softroce/port/port-options.js';

interface Job {
  readonly kind: 'native' | 'dgram';
  readonly payloadBytes: number;
  /** Packets under way at most, and between credits. */
  readonly window: number;
  readonly burst: number;
  readonly seconds: number;
  readonly place: boolean;
}

const UDP_PORT = 47911;
const SENDER = '127.0.0.1';
const RECEIVER = '127.0.0.2';
const REGION_BYTES = 4 << 20;
const CREDIT_OPCODE = 0x11;

async function open(kind: Job['kind'], address: string): Promise<SocketPort> {
  const options = { addresses: [address], udpPort: UDP_PORT };
  return kind === 'native' ? openNativePort(options) : openDgramPort(options);
}

/** One packet: a BTH with the opcode and a payload from the region. */
function describe(port: SocketPort, slot: number, packet: PacketToSend): void {
  const words = port.txPackets;
  const at = slot * TX.WORDS;
  words[at + TX.PATH] = packet.path;
  words[at + TX.HEADER_LENGTH] = 12;
  words[at + TX.FIRST_SEGMENT] = slot;
  words[at + TX.SEGMENT_COUNT] = packet.bytes > 0 ? 1 : 0;
  words[at + TX.HEADER] = packet.opcode;
  words[at + TX.HEADER + 1] = 0x05000000;
  words[at + TX.HEADER + 2] = 0;
  const segment = slot * TX_SEGMENT.WORDS;
  port.txSegments[segment + TX_SEGMENT.REGION] = packet.region;
  port.txSegments[segment + TX_SEGMENT.OFFSET_LO] = packet.offset;
  port.txSegments[segment + TX_SEGMENT.OFFSET_HI] = 0;
  port.txSegments[segment + TX_SEGMENT.LENGTH] = packet.bytes;
}

interface PacketToSend {
  path: number;
  opcode: number;
  region: number;
  offset: number;
  bytes: number;
}

/** The event loop gets its turn now and then; otherwise the port is polled. */
function spin(kind: Job['kind'], step: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const turn = (): void => {
      for (let i = kind === 'native' ? 64 : 1; i > 0; i--) if (!step()) return resolve();
      setImmediate(turn);
    };
    turn();
  });
}

async function receiver(job: Job): Promise<void> {
  const port = await open(job.kind, RECEIVER);
  const region = port.addRegion(new ArrayBuffer(REGION_BYTES), 0, REGION_BYTES);
  const path = port.addPath(gidFromIp(SENDER), 0);
  const credit = { path, opcode: CREDIT_OPCODE, region, offset: 0, bytes: 0 };
  let uncredited = 0;
  let offset = 0;
  let over = false;
  process.once('message', () => (over = true));
  port.watch({ onReadable() {}, onWritable() {}, onReport() {} });
  port.setProcessHold(true);
  process.send?.('ready');
  await spin(job.kind, () => {
    const packets = port.receive();
    for (let i = 0; i < packets; i++) {
      const at = i * PLACE.WORDS;
      port.placements[at + PLACE.SOURCE] = (port.rxPackets[i * RX.WORDS + RX.OFFSET] ?? 0) + 12;
      port.placements[at + PLACE.LENGTH] = (port.rxPackets[i * RX.WORDS + RX.LENGTH] ?? 0) - 12;
      port.placements[at + PLACE.REGION] = region;
      port.placements[at + PLACE.OFFSET_LO] = offset;
      port.placements[at + PLACE.OFFSET_HI] = 0;
      offset = (offset + job.payloadBytes) % (REGION_BYTES - 4096);
    }
    if (job.place && packets > 0) port.place(packets);
    uncredited += packets;
    for (; uncredited >= job.burst; uncredited -= job.burst) {
      describe(port, 0, credit);
      port.send(0, 1);
    }
    return !over;
  });
  process.send?.({ cpu: process.cpuUsage(), counters: countersOf(port) });
  await port.close();
}

function countersOf(port: SocketPort): Record<string, number> {
  const { receivedPackets, badIcrc, recoveredId, receivedTrains, droppedDatagrams } = port.counters;
  return { receivedPackets, badIcrc, recoveredId, receivedTrains, droppedDatagrams };
}

async function sender(job: Job): Promise<void> {
  const port = await open(job.kind, SENDER);
  const region = port.addRegion(new ArrayBuffer(REGION_BYTES), 0, REGION_BYTES);
  const path = port.addPath(gidFromIp(RECEIVER), 0);
  port.watch({ onReadable() {}, onWritable() {}, onReport() {} });
  port.setProcessHold(true);
  let inFlight = 0;
  let sent = 0;
  let offset = 0;
  let lastCredit = performance.now();
  const end = performance.now() + job.seconds * 1000;
  const cpu = process.cpuUsage();
  await spin(job.kind, () => {
    inFlight -= port.receive() * job.burst;
    const now = performance.now();
    if (inFlight <= job.window - job.burst) {
      lastCredit = now;
      for (let i = 0; i < job.burst; i++) {
        describe(port, i, { path, opcode: 4, region, offset, bytes: job.payloadBytes });
        offset = (offset + job.payloadBytes) % (REGION_BYTES - 4096);
      }
      const taken = port.send(0, job.burst);
      sent += taken;
      inFlight += taken;
    } else if (now - lastCredit > 100) {
      inFlight = 0; // something was lost: the count of it is printed
      lastCredit = now;
    }
    return now < end;
  });
  const used = process.cpuUsage(cpu);
  process.send?.({ sent, cpu: used, sentTrains: port.counters.sentTrains });
  await port.close();
}

interface Outcome {
  sent: number;
  sentTrains: number;
  counters: Record<string, number>;
}

function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve) => child.once('message', (message) => resolve(message as T)));
}

async function run(job: Job): Promise<Outcome> {
  const self = fileURLToPath(import.meta.url);
  const start = (role: string): ChildProcess => fork(self, [role, JSON.stringify(job)]);
  const receiving = start('receiver');
  await nextMessage(receiving);
  const sending = start('sender');
  const result = await nextMessage<Omit<Outcome, 'counters'>>(sending);
  receiving.send('over');
  const { counters } = await nextMessage<Pick<Outcome, 'counters'>>(receiving);
  return { ...result, counters };
}

function crcSpeeds(): void {
  const addon = loadNativeAddon();
  const bytes = new Uint8Array(4096).fill(0x5a);
  const rate = (update: () => number): string => {
    const rounds = 50_000;
    for (let i = 0; i < 1000; i++) update();
    const start = performance.now();
    for (let i = 0; i < rounds; i++) update();
    return ((rounds * bytes.length) / (performance.now() - start) / 1e6).toFixed(1);
  };
  addon?.crc32Variants().forEach((name, i) => {
    console.log(`CRC-32 of 4 KiB, ${name}: ${rate(() => addon.crc32(i, bytes))} GB/s`);
  });
  console.log(`CRC-32 of 4 KiB, node:zlib: ${rate(() => crc32(bytes))} GB/s`);
}

async function main(seconds: number): Promise<void> {
  crcSpeeds();
  const jobs: Omit<Job, 'seconds'>[] = [
    { kind: 'native', payloadBytes: 4096, window: 240, burst: 60, place: true },
    { kind: 'native', payloadBytes: 1024, window: 960, burst: 240, place: true },
    { kind: 'native', payloadBytes: 64, window: 1024, burst: 256, place: true },
    { kind: 'native', payloadBytes: 64, window: 64, burst: 16, place: true },
    { kind: 'dgram', payloadBytes: 4096, window: 64, burst: 16, place: true },
    { kind: 'dgram', payloadBytes: 64, window: 64, burst: 16, place: true },
  ];
  for (const job of jobs) {
    const { sent, sentTrains, counters } = await run({ ...job, seconds });
    const perSecond = (counters.receivedPackets ?? 0) / seconds;
    const rates = [(perSecond * job.payloadBytes) / 1e9, perSecond / 1e6].map((x) => x.toFixed(2));
    console.log(
      `${job.kind} ${String(job.payloadBytes)} B, ${String(job.window)} in flight:`,
      `${String(rates[0])} GB/s, ${String(rates[1])} Mpkt/s;`,
      `sent ${String(sent)} in ${String(sentTrains)} trains; received`,
      JSON.stringify(counters),
    );
  }
}

const [, , role, argument] = process.argv;
if (role === 'sender') await sender(JSON.parse(argument ?? '') as Job);
else if (role === 'receiver') await receiver(JSON.parse(argument ?? '') as Job);
else await main(Number(role ?? 2));
