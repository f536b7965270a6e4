// Handlers that take long leave the event loop its turns, whatever peers send.

import assert from 'node:assert/strict';
import { type DatEvent, type Ep, type Evd, EvdFlags, type Ia, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { loopback, testPort } from '../support/loopback.js';
import { patience } from '../support/patience.js';

const UDP_PORT = testPort(39);
const ADDRESSES = [loopback(0, 69), loopback(0, 70)] as const;
const DEPTH = 64;
const BYTES = 64;
const HANDLER_MS = 1;
const RUN_MS = 600;
/** Handlers of each device have 4 ms of a turn; some turns, for the timers of both. */
const MOST_LATE_MS = 40;
/** Beside three dispatchers that are never done. */
const LEAST_ROUND_TRIPS = 5;

function work(): void {
  for (const endMs = performance.now() + HANDLER_MS; performance.now() < endMs;);
}

/** The longest pause that a timer of the process sees, from now on. */
function watchTimers(): () => number {
  let lastMs = performance.now();
  let longestMs = 0;
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - lastMs);
    lastMs = performance.now();
  }, 1);
  return () => {
    clearInterval(timer);
    return Math.max(longestMs, performance.now() - lastMs);
  };
}

const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface Side {
  readonly ia: Ia;
  readonly evd: Evd;
  readonly connectEvd: Evd;
  readonly ep: Ep;
  readonly post: () => void;
  readonly receive: () => void;
}

async function connect(shm: boolean): Promise<readonly [Side, Side]> {
  const ias = await Promise.all(
    ADDRESSES.map((address) => openIa(softroce({ addresses: [address], udpPort: UDP_PORT, shm }))),
  );
  const [here, there] = ias.map((ia): Side => {
    const pz = ia.createPz();
    const evd = ia.createEvd({ qlen: 4 * DEPTH });
    const connectEvd = ia.createEvd({ qlen: 8 });
    const attributes = { maxRecvDtos: DEPTH, maxRequestDtos: DEPTH };
    const ep = ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, connectEvd, attributes });
    const segment = ia.allocate(BYTES, { pz }).segment();
    const receive = (): void => void ep.postRecv(segment, 0);
    return { ia, evd, connectEvd, ep, post: () => void ep.postSend(segment, 1), receive };
  });
  for (let i = 0; i < DEPTH; i++) {
    here!.receive();
    there!.receive();
  }
  there!.ia.createPsp({ connQual: 7472, evd: there!.connectEvd });
  here!.ep.connect({ address: ADDRESSES[1], connQual: 7472 });
  const { event } = await there!.connectEvd.wait();
  assert.ok(event.type === 'connection-request');
  event.cr.accept(there!.ep);
  await here!.connectEvd.wait();
  return [here!, there!];
}

/** Gives each event to `take`, and whether it was received, until both devices are closed. */
const TAKERS: Readonly<Record<string, (evd: Evd, take: (event: DatEvent) => void) => void>> = {
  upcalls: (evd, take) => evd.modifyUpcall('ONE', (event) => take(event)),
  events$: (evd, take) => void evd.events$.subscribe((event) => take(event)),
};

const isReceive = (event: DatEvent): boolean => event.type === 'dto' && event.cookie === 0;
const isOver = (event: DatEvent): boolean => event.type === 'dto' && event.status !== 0;

describe('handlers that take a millisecond each', () => {
  for (const shm of [false, true]) {
    for (const [name, take] of Object.entries(TAKERS)) {
      it(`leave timers their time under a flood: ${name}, ${shm ? 'shm' : 'UDP'}`, async () => {
        const [here, there] = await connect(shm);
        let handled = 0;
        take(there.evd, (event) => {
          if (isOver(event)) return;
          work();
          handled += 1;
          if (isReceive(event)) there.receive();
        });
        take(here.evd, (event) => {
          if (!isOver(event) && !isReceive(event)) here.post();
        });
        for (let i = 0; i < DEPTH; i++) here.post();
        const longest = watchTimers();
        await after(RUN_MS);
        const longestMs = longest();
        await Promise.all([here.ia.close('abrupt'), there.ia.close('abrupt')]);
        assert.ok(handled > 20, `${handled} handled`);
        assert.ok(longestMs < patience(MOST_LATE_MS), `a timer waited ${longestMs} ms`);
      });
    }
  }

  for (const how of ['synchronous', 'behind an await'] as const) {
    it(`and post their next event: timers and a connection go on (${how})`, async () => {
      const [here, there] = await connect(false);
      let roundTrips = 0;
      there.evd.modifyUpcall('ONE', (event) => {
        if (isOver(event) || !isReceive(event)) return;
        there.receive();
        there.post();
      });
      here.evd.modifyUpcall('ONE', (event) => {
        if (isOver(event) || !isReceive(event)) return;
        here.receive();
        roundTrips += 1;
        here.post();
      });
      for (let i = 0; i < 3; i++) {
        const busy = here.ia.createEvd({ qlen: 8, streams: EvdFlags.SOFTWARE });
        busy.modifyUpcall('ONE', () => {
          const goOn = (): void => {
            work();
            if (!busy.isFreed) busy.postSe(0);
          };
          return how === 'synchronous' ? goOn() : Promise.resolve().then(goOn);
        });
        busy.postSe(0);
      }
      here.post();
      const longest = watchTimers();
      await after(RUN_MS);
      const longestMs = longest();
      await Promise.all([here.ia.close('abrupt'), there.ia.close('abrupt')]);
      assert.ok(longestMs < patience(MOST_LATE_MS), `a timer waited ${longestMs} ms`);
      assert.ok(roundTrips >= LEAST_ROUND_TRIPS, `${roundTrips} round trips`);
    });
  }
});
