/** A process of the benchmark: one side of every cell of a contender that runs in Node. */
import { AllocationCount } from '../allocation.js';
import type { Call, End } from './end.js';
import { MessengerEnd } from '../front/messenger-end.js';
import { serveCalls } from './serve.js';
import { SocketEnd } from './socket-end.js';
import { SoftroceEnd } from './softroce-end.js';

const [kind = '', local = '', remote = ''] = process.argv.slice(2);

/** How a device differs from one that has UDP and nothing else. */
const CHOICES: Readonly<Record<string, Parameters<typeof SoftroceEnd.open>[0]>> = {
  shm: { shm: true },
  dgram: { port: 'dgram' },
  'mtu-4096': { mtuBytes: 4096 },
  slots: { shared: true },
  'slots-shm': { shared: true, shm: true },
  // Packets, ports and the order of ACKs are those that a peer of another make sees.
  kernel: { parameters: { agreements: false } },
};

let allocation: AllocationCount | undefined;

/**
 * By kind. What a commit of before may lack, which `--against` measures by this code, is loaded
 * where it is wanted: entries of the package, and packages.
 */
const OPENERS: Readonly<Record<string, () => Promise<End> | End>> = {
  tcp: () => new SocketEnd('tcp', local, remote),
  unix: () => new SocketEnd('unix', local, remote),
  framed: async () => {
    const { FramedSockets } = await import('../front/framed.js');
    return new MessengerEnd(new FramedSockets(), local, remote);
  },
  ws: async () => {
    const { WebSockets } = await import('../front/web-socket.js');
    return new MessengerEnd(new WebSockets(), local, remote);
  },
  flow: openFront,
  'flow-lend': openFront,
  channel: openFront,
};

async function openFront(): Promise<End> {
  const { FrontEnd } = await import('../front/front-end.js');
  return FrontEnd.open(kind, local, remote);
}

function open(): Promise<End> | End {
  const opener = OPENERS[kind];
  if (opener !== undefined) return opener();
  return SoftroceEnd.open({ port: 'native', shm: false, ...CHOICES[kind] }, local, remote);
}

async function perform(end: End, request: Call): Promise<unknown> {
  switch (request.call) {
    case 'listen':
      return end.listen(request.cell);
    case 'run':
      return end.run(request.cell, request.target, request.seconds);
    case 'look':
      return undefined;
    case 'counters':
      return end.counters?.();
    case 'count-allocation':
      allocation = new AllocationCount();
      return undefined;
    case 'allocated':
      return allocation?.stop() ?? 0;
    case 'stop':
      await end.stop();
      return undefined;
    case 'close':
      await end.close();
      process.disconnect();
      return undefined;
  }
}

await serveCalls<Call>(async () => {
  const end = await open();
  return (request) => perform(end, request);
});
