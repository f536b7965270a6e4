/** Packet ports over the in-memory one, with one fault each. */
import { createSocket } from 'node:dgram';
import type { PacketPortFixture } from 'dapl/testing';
import {
  type Gid,
  ForwardingPort,
  type PacketPort,
  type PacketPortHandlers,
  RX,
} from '../../../core/spi/index.js';
import { fixture as memory } from './memory.js';
import { loopback } from '../loopback.js';

const FAR_TIMER_MS = 60_000;

class WatchedPort extends ForwardingPort {
  protected handlers: PacketPortHandlers | undefined;

  override watch(handlers: PacketPortHandlers): void {
    this.handlers = handlers;
    super.watch(handlers);
  }
}

class CallsInsideSend extends WatchedPort {
  override send(from: number, to: number): number {
    this.handlers?.onReadable();
    return super.send(from, to);
  }
}

class CallsLate extends WatchedPort {
  override close(): Promise<void> {
    setTimeout(() => this.handlers?.onReadable(), 20);
    return super.close();
  }
}

/** Once, from the event loop, of a path that nobody has added. */
class TellsOfPeersGone extends WatchedPort {
  override addPath(gid: Gid, ...rest: [number, number?, number?]): number {
    setTimeout(() => this.handlers?.onReport({ type: 'peer-gone', gid, path: 77 }), 1);
    return super.addPath(gid, ...rest);
  }
}

class LeavesATimer extends ForwardingPort {
  static left: NodeJS.Timeout[] = [];

  override close(): Promise<void> {
    LeavesATimer.left.push(setTimeout(() => undefined, FAR_TIMER_MS));
    return super.close();
  }
}

class LeavesASocket extends ForwardingPort {
  static left: { close(): void }[] = [];
  private readonly socket = createSocket('udp4').bind(0, loopback(0, 61));

  override close(): Promise<void> {
    LeavesASocket.left.push(this.socket);
    return super.close();
  }
}

class HoldsTheProcess extends ForwardingPort {
  private readonly timer = setInterval(() => undefined, FAR_TIMER_MS);

  override close(): Promise<void> {
    clearInterval(this.timer);
    return super.close();
  }
}

class NeverHolds extends ForwardingPort {
  override setProcessHold(): void {
    // Forgotten.
  }
}

/** Sets the word of all packets that come. */
abstract class Misnames extends ForwardingPort {
  protected abstract readonly index: number;

  override receive(): number {
    const count = super.receive();
    for (let i = 0; i < count; i++) {
      this.rxPackets[i * RX.WORDS + RX.LOCAL_GID_INDEX] = this.index;
    }
    return count;
  }
}

class NamesTheFirst extends Misnames {
  protected override readonly index = 0;
}

class NamesNone extends Misnames {
  protected override readonly index = 7;
}

export const PLANTS = {
  CallsInsideSend,
  CallsLate,
  TellsOfPeersGone,
  LeavesATimer,
  LeavesASocket,
  HoldsTheProcess,
  NeverHolds,
  NamesTheFirst,
  NamesNone,
} as const satisfies Record<string, new (port: PacketPort) => PacketPort>;

export type Plant = keyof typeof PLANTS;

/** Names the fault to the processes that the suite starts. */
export const PLANT_VARIABLE = 'DAPL_TEST_PLANT';

/** The faulty port is the second one of each pair, which receives, or both. */
export const fixture: PacketPortFixture = {
  capabilities: memory.capabilities,
  async openPair(family) {
    const Port = PLANTS[process.env[PLANT_VARIABLE] as Plant];
    const { a, b, ...rest } = await memory.openPair(family);
    return { ...rest, a: new Port(a), b: new Port(b), module: import.meta.url };
  },
};

/** Ends what faulty ports have left behind. */
export function endPlants(): void {
  LeavesATimer.left.splice(0).forEach((timer) => clearTimeout(timer));
  LeavesASocket.left.splice(0).forEach((socket) => socket.close());
}
