/** One address that floods: a UDP socket, at a pace, bounded in count. */
import { createSocket, type Socket } from 'node:dgram';
import { setTimeout as wait } from 'node:timers/promises';
import { gidFromIp } from '../../core/spi/index.js';
import { PseudoHeader } from '../../providers/hca/wire/icrc.js';
import { floodDatagram, type FloodKind } from './datagrams.js';

export interface FloodOptions {
  readonly kind: FloodKind;
  /** Addresses in text. */
  readonly from: string;
  readonly to: string;
  readonly udpPort: number;
  readonly connQual: number;
  readonly count: number;
  readonly perSecond: number;
}

/** What a process that had to wait for a core makes up for at once; the rest only takes longer. */
const MOST_MADE_UP_MS = 10;

/** Sends the whole count, never faster than told: a slow machine makes it take longer. */
export async function flood(options: FloodOptions): Promise<void> {
  const socket = createSocket({ type: 'udp4', sendBufferSize: 1 << 20 });
  await new Promise<void>((resolve) => socket.bind(0, options.from, resolve));
  // What the victim answers is nothing to a flooder.
  socket.on('message', () => undefined).on('error', () => undefined);
  try {
    await send(socket, options);
  } finally {
    socket.close();
  }
}

async function send(socket: Socket, options: FloodOptions): Promise<void> {
  const { count, perSecond, to, udpPort } = options;
  const target = { ...options, from: gidFromIp(options.from), to: gidFromIp(to) };
  const { port } = socket.address();
  const flow = new PseudoHeader().setFlow(target.from, target.to, port, udpPort);
  let [due, lastMs] = [0, performance.now()];
  for (let sent = 0; sent < count;) {
    const nowMs = performance.now();
    due += (Math.min(nowMs - lastMs, MOST_MADE_UP_MS) * perSecond) / 1000;
    lastMs = nowMs;
    for (; sent < Math.min(due, count); sent++) {
      const datagram = floodDatagram(target, flow, sent);
      await new Promise<void>((resolve) => {
        socket.send(datagram, udpPort, to, () => resolve());
      });
    }
    await wait(1);
  }
}
