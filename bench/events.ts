// What it costs to hand over one completion, by the way it is taken: nanoseconds of CPU beyond
// having it in the queue, against a bare callback. Software events of one dispatcher take the place
// of completions, so that no device, socket or other process is measured.
//
//   node dist/bench/events.js [thousands]

import { setImmediate as nextTurn } from 'node:timers/promises';
import { EvdFlags, EventBatch, type Evd, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';

const BURST = 64;

const fabric = new Fabric({ seed: 1, autoRun: true });
const ia = await openIa(mock({ fabric, address: '192.0.2.1' }));
const newEvd = (): Evd => ia.createEvd({ qlen: 2 * BURST, streams: EvdFlags.SOFTWARE });
let taken = 0;
const take = (): void => {
  taken += 1;
};

function fill(evd: Evd): void {
  for (let i = 0; i < BURST; i++) evd.postSe(undefined);
}

/** Fills the queue, and comes back when all has been taken. */
type Round = () => Promise<void> | void;

async function untilTaken(): Promise<void> {
  const end = taken + BURST;
  while (taken < end) await nextTurn();
}

function pushed(start: (evd: Evd) => void): Round {
  const evd = newEvd();
  start(evd);
  return () => {
    const done = untilTaken();
    fill(evd);
    return done;
  };
}

async function iterate(evd: Evd): Promise<void> {
  for await (const batch of evd) batch.forEach(take);
}

function pulled(turn: (evd: Evd) => void): Round {
  const evd = newEvd();
  return async () => {
    fill(evd);
    turn(evd);
    await nextTurn();
  };
}

const batch = new EventBatch(BURST);
const ROUNDS: Readonly<Record<string, Round>> = {
  'bare callback': pulled((evd) => {
    for (let i = 0; i < BURST; i++) take();
    while (evd.dequeueInto(batch) > 0);
  }),
  'dequeue, reused batch': pulled((evd) => {
    while (evd.dequeueInto(batch) > 0) for (let i = 0; i < batch.count; i++) take();
  }),
  dequeue: pulled((evd) => {
    while (evd.dequeue() !== undefined) take();
  }),
  'upcall ONE': pushed((evd) => evd.modifyUpcall('ONE', take)),
  'upcall MANY': pushed((evd) => evd.modifyUpcall('MANY', take)),
  events$: pushed((evd) => evd.events$.subscribe(take)),
  'for await': pushed((evd) => void iterate(evd)),
};

async function nsPerEvent(round: Round, rounds: number): Promise<number> {
  for (let i = 0; i < rounds / 4; i++) await round();
  const start = process.cpuUsage();
  for (let i = 0; i < rounds; i++) await round();
  const { user, system } = process.cpuUsage(start);
  return ((user + system) * 1e3) / (rounds * BURST);
}

const rounds = Math.ceil((Number(process.argv[2] ?? 1000) * 1000) / BURST);
const bare = await nsPerEvent(ROUNDS['bare callback']!, rounds);
for (const [name, round] of Object.entries(ROUNDS)) {
  const ns = await nsPerEvent(round, rounds);
  const more = (ns - bare).toFixed(0);
  console.log(`${name.padEnd(22)} ${ns.toFixed(0).padStart(6)} ns, ${more.padStart(5)} more`);
}
process.exit(0);
