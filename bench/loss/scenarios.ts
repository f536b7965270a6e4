/** Networks that lose packets, in virtual time: the same seed gives the same numbers. */
import { Fabric, type LinkOptions, MockNode } from '../../providers/mock/index.js';
import { Flow, Host, MTU_BYTES, type Operation } from './flow.js';
import type { LossyLink } from './models.js';

const BITS_PER_SECOND = 10e9;
const ONE_WAY_US = 50;
/** Ethernet, IP, UDP (66), BTH and ICRC (16) around the payload of a packet. */
const PACKET_BYTES = MTU_BYTES + 66 + 16;

export const LINK: LossyLink = {
  bitsPerSecond: BITS_PER_SECOND,
  roundTripUs: 2 * ONE_WAY_US,
  packetBytes: PACKET_BYTES,
  payloadBytes: MTU_BYTES,
};
/** A long and slow path: its round trip is longer than the first guess of it. */
export function longPath(roundTripUs: number): LossyLink {
  return { ...LINK, bitsPerSecond: 100e6, roundTripUs };
}

/** Bytes a second of payload that the link carries when nothing is lost. */
export function capacityBytes(link: LossyLink): number {
  return (link.bitsPerSecond / 8) * (link.payloadBytes / link.packetBytes);
}

const CAPACITY = capacityBytes(LINK);

function linkOptions(link: LossyLink): Partial<LinkOptions> {
  const latencyUs = link.roundTripUs / 2;
  return { bandwidth: link.bitsPerSecond, latencyMinUs: latencyUs, latencyMeanUs: latencyUs };
}

function host(fabric: Fabric, address: string): Host {
  return new Host(new MockNode(fabric, { addresses: [address] }));
}

/**
 * Hosts at a shared port are faster than it, and jitter a little: with equal rates and none,
 * whoever comes first would lock all others out of a full queue, packet by packet.
 */
const hostLink = {
  bandwidth: 2.5 * BITS_PER_SECOND,
  latencyMinUs: ONE_WAY_US - 2,
  latencyMeanUs: ONE_WAY_US,
};

/** Lets virtual time pass. */
function run(fabric: Fabric, forUs: number): void {
  const { clock } = fabric;
  const endUs = clock.now() + forUs;
  while (clock.nextUs <= endUs) fabric.step();
  clock.skipTo(endUs);
}

export interface RandomLoss {
  /** Of what the link carries, 0 to 1. */
  readonly goodput: number;
  readonly timeouts: number;
  /** Packets sent for each one that was needed. */
  readonly sentTwice: number;
}

/** One flow over a link that loses packets at random, ACKs as well. */
export function randomLoss(
  lossPercent: number,
  seed: number,
  forUs: number,
  operation: Operation = 'WRITE',
  onLink = LINK,
): RandomLoss {
  const fabric = new Fabric({
    seed,
    mtuBytes: MTU_BYTES,
    link: { ...linkOptions(onLink), lossPercent },
  });
  const from = host(fabric, '10.0.0.1');
  const to = host(fabric, '10.0.0.2');
  const flow = new Flow(from, to, operation);
  flow.start();
  run(fabric, forUs / 10);
  const before = flow.bytes;
  const sentBefore = from.node.port.counters.sentPackets;
  run(fabric, forUs);
  const bytes = flow.bytes - before;
  const sent = from.node.port.counters.sentPackets - sentBefore;
  return {
    goodput: flow.failed ? 0 : bytes / capacityBytes(onLink) / (forUs / 1e6),
    timeouts: [from, to].reduce((sum, { node }) => sum + node.device.hca.counters.timeouts, 0),
    sentTwice: bytes === 0 ? 0 : sent / (bytes / MTU_BYTES) - 1,
  };
}

export interface Sharing {
  readonly flows: number;
  /** Of what the bottleneck carries. */
  readonly goodput: number;
  /** Of the time that the bottleneck was busy with anything, repetitions included. */
  readonly utilisation: number;
  /** Jain's index: 1 when all have the same, 1/n when one has all. */
  readonly fairness: number;
  readonly dropped: number;
  readonly failed: number;
}

/**
 * Flows from hosts of their own to one: they share the port of a switch whose queue holds
 * `queueBytes`. They start 100 us apart, or (incast) at once.
 */
export function sharedBottleneck(
  flows: number,
  queueBytes: number,
  seed: number,
  forUs: number,
  incast = false,
): Sharing {
  const fabric = new Fabric({ seed, mtuBytes: MTU_BYTES, link: hostLink });
  const to = host(fabric, '10.0.1.1');
  const options = { bandwidth: BITS_PER_SECOND, queueBytes };
  const bottleneck = fabric.setBottleneck('10.0.1.1', options);
  const all = Array.from({ length: flows }, (_, i) => {
    return new Flow(host(fabric, `10.0.${2 + (i >> 7)}.${1 + (i & 127)}`), to);
  });
  for (const flow of all) {
    flow.start();
    if (!incast) run(fabric, 100);
  }
  if (!incast) run(fabric, forUs / 4);
  const before = all.map((flow) => flow.bytes);
  const [passed, dropped] = [bottleneck.passedBytes, bottleneck.dropped];
  run(fabric, forUs);
  const rates = all.map((flow, i) => flow.bytes - before[i]!);
  const total = rates.reduce((sum, rate) => sum + rate, 0);
  const squares = rates.reduce((sum, rate) => sum + rate * rate, 0);
  return {
    flows,
    goodput: total / CAPACITY / (forUs / 1e6),
    utilisation: (bottleneck.passedBytes - passed) / ((BITS_PER_SECOND / 8e6) * forUs),
    fairness: squares === 0 ? 0 : (total * total) / (flows * squares),
    dropped: bottleneck.dropped - dropped,
    failed: all.filter((flow) => flow.failed).length,
  };
}

/** How long a flow needs after an outage until it has completed a message again, in us. */
export function recoveryUs(outageUs: number, seed: number): number {
  const fabric = new Fabric({ seed, mtuBytes: MTU_BYTES, link: linkOptions(LINK) });
  const flow = new Flow(host(fabric, '10.0.0.1'), host(fabric, '10.0.0.2'));
  flow.start();
  run(fabric, 20_000);
  fabric.partition(['10.0.0.1'], ['10.0.0.2']);
  run(fabric, outageUs);
  fabric.heal();
  const { bytes } = flow;
  const healedUs = fabric.clock.now();
  while (flow.bytes === bytes && !flow.failed && fabric.clock.nextUs < Infinity) fabric.step();
  return flow.failed ? Infinity : fabric.clock.now() - healedUs;
}
