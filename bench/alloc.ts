// What the steady path of small messages allocates, by the way completions are taken: bytes of the
// young heap and scavenges per message, two adapters of this process over the native port. The
// young heap is made so large that few collections come between two looks at it.
//
//   node --max-semi-space-size=128 --min-semi-space-size=128 dist/bench/alloc.js [millions]

import { PerformanceObserver, constants } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { getHeapSpaceStatistics } from 'node:v8';
import { EventBatch, type Ep, type Evd, type Ia, type LmrSegment, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';

const BYTES = 64;
const DEPTH = 64;
/** Turns of the loop between two turns of the event loop. */
const TURNS = 4096;

class End {
  readonly batch = new EventBatch(256);
  readonly evd: Evd;
  readonly ep: Ep;
  readonly segments: readonly LmrSegment[];
  taken = 0;

  constructor(ia: Ia, sends: boolean) {
    const slots = 2 * DEPTH;
    const pz = ia.createPz();
    const memory = ia.allocate(slots * BYTES, { pz });
    this.segments = Array.from({ length: slots }, (_, i) => memory.segment(i * BYTES, BYTES));
    this.evd = ia.createEvd({ qlen: 4 * slots, polling: 'spin' });
    const attributes = { maxRecvDtos: slots, maxRequestDtos: slots };
    this.ep = ia.createEndpoint({ pz, recvEvd: this.evd, requestEvd: this.evd, attributes });
    if (!sends) this.segments.forEach((segment, i) => this.ep.postRecv(segment, i));
  }

  post(cookie: number): void {
    this.ep.postSend(this.segments[cookie]!, cookie);
  }

  /** Takes what waits; each completion is followed by the next post. */
  readonly turns: Readonly<Record<Way, (again: (cookie: number) => void) => void>> = {
    dequeueInto: (again) => {
      const count = this.evd.dequeueInto(this.batch);
      for (let i = 0; i < count; i++) again(this.batch.cookies[i]!);
      this.taken += count;
    },
    dequeue: (again) => {
      for (let event = this.evd.dequeue(); event; event = this.evd.dequeue()) {
        if (event.type !== 'dto') continue;
        again(event.cookie);
        this.taken += 1;
      }
    },
  };
}

type Way = 'dequeueInto' | 'dequeue';

let scavenges = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { kind } = (entry as unknown as { detail: { kind: number } }).detail;
    if (kind === constants.NODE_PERFORMANCE_GC_MINOR) scavenges += 1;
  }
}).observe({ entryTypes: ['gc'] });

function youngBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')!
    .space_used_size;
}

async function connected(): Promise<readonly [End, End]> {
  const [near, far] = ['127.0.0.21', '127.0.0.22'] as const;
  const a = await openIa(softroce({ addresses: [near], port: 'native' }));
  const b = await openIa(softroce({ addresses: [far], port: 'native' }));
  const [sender, receiver] = [new End(a, true), new End(b, false)];
  const psp = b.createPsp({ connQual: 7600 });
  psp.requests$.subscribe((event) => event.cr?.accept(receiver.ep));
  const established = new Promise((resolve) => sender.ep.connection$.subscribe(resolve));
  sender.ep.connect({ address: far, connQual: 7600, timeoutMs: 5000 });
  await established;
  return [sender, receiver];
}

async function run(ends: readonly [End, End], way: Way, messages: number): Promise<number> {
  const [sender, receiver] = ends;
  const send = (cookie: number): void => sender.post(cookie);
  const receive = (cookie: number): void => {
    receiver.ep.postRecv(receiver.segments[cookie]!, cookie);
  };
  const sending = (): void => sender.turns[way](send);
  const receiving = (): void => receiver.turns[way](receive);
  const end = receiver.taken + messages;
  let allocated = 0;
  while (receiver.taken < end) {
    const before = youngBytes();
    const collections = scavenges;
    for (let i = 0; i < TURNS && receiver.taken < end; i++) {
      sender.ep.burst(sending);
      receiver.ep.burst(receiving);
    }
    const grown = youngBytes() - before;
    await nextTurn();
    // A slice in which the heap was collected says nothing; there are few.
    if (scavenges === collections && grown > 0) allocated += grown;
  }
  return allocated;
}

const millions = Number(process.argv[2] ?? 10);
const ends = await connected();
for (let i = 0; i < DEPTH; i++) ends[0].post(i);
for (const way of ['dequeueInto', 'dequeue'] as const) {
  await run(ends, way, 300_000);
  const before = scavenges;
  const bytes = await run(ends, way, millions * 1e6);
  const each = (bytes / (millions * 1e6)).toFixed(2);
  console.log(
    `${way.padEnd(12)} ${millions} million messages, both ends: ${each} bytes a message, ` +
      `${scavenges - before} scavenges`,
  );
}
process.exit(0);
