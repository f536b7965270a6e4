/** The ways in which a consumer gets its completions, each as a loop over so many of them. */
import { DatDtoStatus, Evd, EventBatch, EvdFlags } from '../../core/evd/index.js';
import { CQE, CQE_BYTES, Ring } from '../../core/spi/index.js';
import { CompletionSource } from './source.js';

export interface Way {
  readonly name: string;
  /** Delivers `messages` in bursts, and looks at cookie and status of each. */
  run(messages: number, burst: number): Promise<void> | void;
}

const QLEN = 1024;

/** What every consumer does: a wrong status or count would show. */
class Consumer {
  count = 0;
  private last = -1;

  readonly take = (cookie: number, status: number): void => {
    if (status !== DatDtoStatus.SUCCESS) throw new Error(`status ${status}`);
    this.last = cookie;
    this.count += 1;
  };

  check(messages: number): void {
    if (this.count === messages && this.last >= 0) return;
    throw new Error(`${this.count} of ${messages} messages arrived`);
  }
}

function evdOf(source: CompletionSource): Evd {
  return new Evd(source, { id: 1, qlen: QLEN, streams: EvdFlags.DTO });
}

/** No EVD: what a loop over the ring with a callback costs. */
function bareCallback(messages: number, burst: number): void {
  const ring = Ring.allocate(QLEN, CQE_BYTES);
  const consumer = new Consumer();
  for (let sent = 0; sent < messages; sent += burst) {
    ring.producer = (ring.producer + burst) >>> 0;
    const end = ring.producer;
    for (let i = ring.consumer; i !== end; i = (i + 1) >>> 0) {
      const at = ring.wordOf(i);
      consumer.take(ring.words[at + CQE.COOKIE_LO]!, ring.words[at + CQE.CONTROL]! & 0xff);
    }
    ring.consumer = end;
  }
  consumer.check(messages);
}

function dequeueInto(messages: number, burst: number): void {
  const source = new CompletionSource();
  const evd = evdOf(source);
  const batch = new EventBatch(256);
  const consumer = new Consumer();
  for (let sent = 0; sent < messages; sent += burst) {
    source.complete(burst);
    while (evd.dequeueInto(batch) > 0) {
      for (let i = 0; i < batch.count; i++) consumer.take(batch.cookies[i]!, batch.statuses[i]!);
    }
  }
  consumer.check(messages);
}

function dequeue(messages: number, burst: number): void {
  const source = new CompletionSource();
  const evd = evdOf(source);
  const consumer = new Consumer();
  for (let sent = 0; sent < messages; sent += burst) {
    source.complete(burst);
    for (let event = evd.dequeue(); event !== undefined; event = evd.dequeue()) {
      if (event.type === 'dto') consumer.take(event.cookie, event.status);
    }
  }
  consumer.check(messages);
}

/** Whatever the EVD pushes of itself: `attach` says where to. */
function pushed(attach: (evd: Evd, consumer: Consumer) => void): Way['run'] {
  return (messages, burst) => {
    const source = new CompletionSource();
    const consumer = new Consumer();
    attach(evdOf(source), consumer);
    for (let sent = 0; sent < messages; sent += burst) source.complete(burst);
    consumer.check(messages);
  };
}

async function forAwait(messages: number, burst: number): Promise<void> {
  const source = new CompletionSource();
  const evd = evdOf(source);
  const consumer = new Consumer();
  const feed = (): void => source.complete(burst);
  queueMicrotask(feed);
  for await (const events of evd) {
    for (const event of events) {
      if (event.type === 'dto') consumer.take(event.cookie, event.status);
    }
    if (consumer.count >= messages) break;
    // The next burst comes when the loop waits for it.
    queueMicrotask(feed);
  }
  consumer.check(messages);
}

function upcall(policy: 'ONE' | 'MANY'): Way['run'] {
  return pushed((evd, consumer) => {
    evd.modifyUpcall(policy, (event) => {
      if (event.type === 'dto') consumer.take(event.cookie, event.status);
    });
  });
}

const notify = pushed((evd, consumer) => {
  const batch = new EventBatch(256);
  evd.modifyUpcall('NOTIFY', () => {
    while (evd.dequeueInto(batch) > 0) {
      for (let i = 0; i < batch.count; i++) consumer.take(batch.cookies[i]!, batch.statuses[i]!);
    }
  });
});

const stream = pushed((evd, consumer) => {
  evd.events$.subscribe((event) => {
    if (event.type === 'dto') consumer.take(event.cookie, event.status);
  });
});

export const WAYS: readonly Way[] = [
  { name: 'bare callback over a ring', run: bareCallback },
  { name: 'dequeueInto a reused batch', run: dequeueInto },
  { name: 'upcall NOTIFY + dequeueInto', run: notify },
  { name: 'dequeue()', run: dequeue },
  { name: 'upcall ONE', run: upcall('ONE') },
  { name: 'upcall MANY', run: upcall('MANY') },
  { name: 'events$', run: stream },
  { name: 'for await', run: forAwait },
];
