/**
 * One point of the curve over real sockets, in real time: two softroce devices on loopback, a lossy
 * link of the same shape in between, slow enough that the timers of a system can keep up with it.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { silentLogger } from '../../core/spi/index.js';
import type { HcaNode } from '../../providers/kit/hca-node.js';
import { softroceNode } from '../../providers/softroce/instance.js';
import { openSocketPort } from '../../providers/softroce/socket-port.js';
import { Flow, Host, MTU_BYTES } from './flow.js';
import { LossyPort } from './lossy-port.js';
import type { LossyLink } from './models.js';
import { capacityBytes, LINK, type RandomLoss } from './scenarios.js';

/** The round trip is so many times that of LINK, and the rate as many times less. */
const SLOWER = 20;

export const SLOW_LINK: LossyLink = {
  ...LINK,
  bitsPerSecond: LINK.bitsPerSecond / SLOWER,
  roundTripUs: LINK.roundTripUs * SLOWER,
};

export interface LoopbackPoint extends RandomLoss {
  /** Packets that the link lost, of this direction. */
  readonly lost: number;
}

/**
 * @param network first three numbers of the two addresses
 * @throws SpiError EADDRINUSE when another program uses RoCE at one of them
 */
export async function loopbackLoss(
  lossPercent: number,
  seed: number,
  forMs: number,
  network = '127.0.9',
): Promise<LoopbackPoint> {
  const nodes = await Promise.all(
    [`${network}.1`, `${network}.2`].map(async (address, i) => {
      const inner = await openSocketPort({ addresses: [address] });
      const port = new LossyPort(inner, SLOW_LINK, lossPercent, seed + i);
      return softroceNode({ name: address, port, logger: silentLogger, parameters: {} });
    }),
  );
  const [left, right] = nodes as [HcaNode, HcaNode];
  for (const node of nodes) node.port.setProcessHold(true);
  const flow = new Flow(new Host(left), new Host(right));
  try {
    flow.start();
    await wait(forMs / 10);
    const bytes = flow.bytes;
    const sent = left.port.counters.sentPackets;
    const startMs = performance.now();
    await wait(forMs);
    const seconds = (performance.now() - startMs) / 1000;
    const done = flow.bytes - bytes;
    const packets = left.port.counters.sentPackets - sent;
    return {
      goodput: flow.failed ? 0 : done / capacityBytes(SLOW_LINK) / seconds,
      timeouts: left.device.hca.counters.timeouts,
      sentTwice: done === 0 ? 0 : packets / (done / MTU_BYTES) - 1,
      lost: (right.port as LossyPort).lost,
    };
  } finally {
    flow.stop();
    await Promise.all(nodes.map((node) => node.device.close()));
  }
}
