// Streams at full speed leave the event loop its turns: timers of the application run on time.

import assert from 'node:assert/strict';
import { type DatEvent, type Evd, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { loopback, testPort } from '../support/loopback.js';
import { patience } from '../support/patience.js';

const UDP_PORT = testPort(39);
const ADDRESSES = [loopback(0, 67), loopback(0, 68)] as const;
const DEPTH = 64;
const BYTES = 4096;
const MESSAGES = 6000;
/** Completions of one side that may be handled without a turn of the event loop in between. */
const MOST_A_TURN = 8 * DEPTH;
/** A 1 ms timer, beside the longest pause that the same timer sees when nothing is streamed. */
const MOST_LATE_MS = 250;

/** A consumer: calls back for each event until it is told that all is done. */
type Taking = (evd: Evd, take: (event: DatEvent) => boolean) => Promise<void>;

const TAKINGS: Readonly<Record<string, Taking>> = {
  upcalls: (evd, take) =>
    new Promise((resolve) => {
      evd.modifyUpcall('ONE', (event) => {
        if (take(event)) resolve();
      });
    }),
  'wait, one by one': async (evd, take) => {
    for (;;) if (take((await evd.wait()).event)) return;
  },
  'for await': async (evd, take) => {
    for await (const batch of evd) for (const event of batch) if (take(event)) return;
  },
  events$: (evd, take) =>
    new Promise((resolve) => {
      evd.events$.subscribe((event) => {
        if (take(event)) resolve();
      });
    }),
};

/** Pauses of the event loop, in turns and as a timer sees them. */
class Loop {
  handled = 0;
  mostATurn = 0;
  longestMs = 0;
  ticks = 0;
  private running = true;
  private readonly timer: NodeJS.Timeout;
  private lastMs = performance.now();

  constructor() {
    this.turn();
    this.timer = setInterval(() => this.tick(), 1);
  }

  private turn(): void {
    this.mostATurn = Math.max(this.mostATurn, this.handled);
    this.handled = 0;
    if (this.running) setImmediate(() => this.turn());
  }

  private tick(): void {
    const now = performance.now();
    this.longestMs = Math.max(this.longestMs, now - this.lastMs);
    this.lastMs = now;
    this.ticks++;
  }

  end(): this {
    this.running = false;
    clearInterval(this.timer);
    this.turn();
    return this;
  }
}

/** The longest pause of a loop that is as busy as the machine makes it. */
async function idleLoop(ms: number): Promise<Loop> {
  const loop = new Loop();
  await new Promise((resolve) => setTimeout(resolve, ms));
  return loop.end();
}

async function stream(taking: Taking, polling: 'event' | 'adaptive'): Promise<Loop> {
  const ias = await Promise.all(
    ADDRESSES.map((address) =>
      openIa(softroce({ addresses: [address], udpPort: UDP_PORT, shm: false })),
    ),
  );
  const sides = ias.map((ia) => {
    const pz = ia.createPz();
    const evd = ia.createEvd({ qlen: 4 * DEPTH, polling });
    const connectEvd = ia.createEvd({ qlen: 8 });
    const attributes = { maxRecvDtos: 2 * DEPTH, maxRequestDtos: DEPTH };
    const ep = ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, connectEvd, attributes });
    return { ia, evd, connectEvd, ep, segment: ia.allocate(BYTES, { pz }).segment() };
  });
  const [here, there] = [sides[0]!, sides[1]!];
  for (let i = 0; i < 2 * DEPTH; i++) there.ep.postRecv(there.segment, i);
  there.ia.createPsp({ connQual: 7471, evd: there.connectEvd });
  here.ep.connect({ address: ADDRESSES[1], connQual: 7471 });
  const { event } = await there.connectEvd.wait();
  assert.ok(event.type === 'connection-request');
  event.cr.accept(there.ep);
  await here.connectEvd.wait();
  const loop = new Loop();
  let [sent, received] = [0, 0];
  const all = [
    taking(there.evd, (receive) => {
      loop.handled++;
      assert.ok(receive.type === 'dto' && receive.status === 0);
      if (received + 2 * DEPTH < MESSAGES) there.ep.postRecv(there.segment, 1);
      return ++received === MESSAGES;
    }),
    taking(here.evd, (send) => {
      loop.handled++;
      assert.ok(send.type === 'dto' && send.status === 0);
      if (sent < MESSAGES) here.ep.postSend(here.segment, ++sent);
      return send.cookie === MESSAGES;
    }),
  ];
  while (sent < DEPTH) here.ep.postSend(here.segment, ++sent);
  await Promise.all(all);
  loop.end();
  // At once, while the ports are polled: that must not keep them from closing.
  await Promise.all(ias.map((ia) => ia.close()));
  return loop;
}

describe('the event loop, while streams run', () => {
  for (const [name, taking] of Object.entries(TAKINGS)) {
    for (const polling of ['event', 'adaptive'] as const) {
      it(`gets its turns: ${name}, polling ${polling}`, async () => {
        const loop = await stream(taking, polling);
        const idle = await idleLoop(100);
        assert.ok(loop.mostATurn > 0 && loop.mostATurn <= MOST_A_TURN, `${loop.mostATurn} a turn`);
        const most = patience(MOST_LATE_MS) + 4 * idle.longestMs;
        assert.ok(loop.longestMs <= most, `a pause of ${loop.longestMs} ms, ${most} are allowed`);
      });
    }
  }
});
