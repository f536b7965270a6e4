/** One side of a measurement: a receiver, or a sender to one. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  DatDtoStatus,
  DatEventNumber,
  type Evd,
  type Ia,
  type LmrSegment,
  type Pz,
  MemPrivileges,
  openIa,
  type XrcInitiator,
} from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { median } from '../compare/statistics.js';
import type { Call, Kind } from './calls.js';

const RECEIVES = 64;
const DEPTH = 16;
const PORT = 7500;
const GAP_MS = 1;
/** A receiver that lags behind is tried again after 0.64 ms. */
const TRANSPORT = { rnrRetryCount: 7, minRnrTimer: 12 };
const [kind = '', address = '', file = ''] = process.argv.slice(2) as [Kind, string, string];

const SLOT_BYTES = 65_536;
/** Messages of the flood are shorter, or longer, than those that have a time in them. */
const STAMP_BYTES = 16;
let received = 0;
let delaysUs: number[] = [];
let segments: LmrSegment[] = [];
let send: (segment: LmrSegment) => void;
let done: Evd;

function note(segment: LmrSegment, bytes: number): void {
  received++;
  if (bytes !== STAMP_BYTES) return;
  const view = new DataView(segment.bytes.buffer, segment.bytes.byteOffset, STAMP_BYTES);
  delaysUs.push(Number(process.hrtime.bigint() - view.getBigUint64(0)) / 1e3);
}

async function receive(): Promise<number> {
  const isHosted = kind === 'hosted';
  const ia = await openIa(softroce({ addresses: [address], shared: isHosted, shm: false }));
  const pz = ia.createPz();
  const shared = isHosted ? { shared: `bench ${process.pid}` } : {};
  const privileges = MemPrivileges.ALL;
  const lmr = ia.allocate(RECEIVES * SLOT_BYTES, { pz, privileges, ...shared });
  segments = Array.from({ length: RECEIVES }, (_, i) => lmr.segment(i * SLOT_BYTES, SLOT_BYTES));
  return kind === 'rc' ? listenRc(ia, pz) : listenXrc(ia, pz);
}

async function listenXrc(ia: Ia, pz: Pz): Promise<number> {
  const domain = await ia.openXrcDomain({ key: kind === 'hosted' ? file : 'bench' });
  const srq = domain.createSrq({ pz, maxRecvDtos: RECEIVES });
  for (const [cookie, segment] of segments.entries()) srq.postRecv(segment, cookie);
  srq.completions$.subscribe(({ cookie, transferredLength }) => {
    note(segments[cookie]!, transferredLength);
    srq.postRecv(segments[cookie]!, cookie);
  });
  ia.createPsp({ connQual: PORT, xrc: true }).requests$.subscribe(({ cr }) =>
    domain.accept(cr, { attributes: { transport: TRANSPORT } }),
  );
  return srq.srqn;
}

function listenRc(ia: Ia, pz: Pz): number {
  const srq = ia.createSrq({ pz, maxRecvDtos: RECEIVES });
  for (const [cookie, segment] of segments.entries()) srq.postRecv(segment, cookie);
  const evd = ia.createEvd({ qlen: 2 * RECEIVES });
  evd.events$.subscribe((event) => {
    if (event.type !== 'dto' || event.status !== DatDtoStatus.SUCCESS) return;
    note(segments[event.cookie]!, event.transferredLength);
    srq.postRecv(segments[event.cookie]!, event.cookie);
  });
  const others = ia.createEvd({ qlen: 16 });
  ia.createPsp({ connQual: PORT }).requests$.subscribe(({ cr }) => {
    const evds = { requestEvd: others, recvEvd: evd, connectEvd: others };
    cr.accept(ia.createEndpoint({ pz, ...evds, srq, attributes: { transport: TRANSPORT } }));
  });
  return 0;
}

async function connect(to: string, srqn: number): Promise<void> {
  const ia = await openIa(softroce({ addresses: [address], shm: false }));
  const pz = ia.createPz();
  const lmr = ia.allocate(DEPTH * SLOT_BYTES, { pz });
  segments = Array.from({ length: DEPTH }, (_, i) => lmr.segment(i * SLOT_BYTES, SLOT_BYTES));
  done = ia.createEvd({ qlen: 4 * DEPTH });
  const attributes = { maxRequestDtos: DEPTH, transport: TRANSPORT };
  const evds = { requestEvd: done, connectEvd: done };
  if (kind === 'rc') {
    const ep = ia.createEndpoint({ pz, ...evds, recvEvd: done, attributes });
    ep.connect({ address: to, connQual: PORT });
    send = (segment) => ep.postSend(segment, 0);
  } else {
    const own = await ia.openXrcDomain();
    const ep: XrcInitiator = own.createInitiator({ pz, ...evds, attributes });
    ep.connect({ address: to, connQual: PORT });
    send = (segment) => ep.toSrq(srqn).postSend(segment, 0);
  }
  const { event } = await done.wait();
  if (event.number !== DatEventNumber.ESTABLISHED) throw new Error('no connection');
}

/** Messages that meet no other, each with the time when it was posted. */
async function ping(seconds: number): Promise<void> {
  const segment = segments[0]!.set(0, STAMP_BYTES);
  const view = new DataView(segment.bytes.buffer, segment.bytes.byteOffset, STAMP_BYTES);
  const endMs = performance.now() + seconds * 1e3;
  while (performance.now() < endMs) {
    view.setBigUint64(0, process.hrtime.bigint());
    send(segment);
    await done.wait();
    await sleep(GAP_MS);
  }
}

/** As many messages as there is room for at the sender, of the same length. */
async function flood(bytes: number, seconds: number): Promise<void> {
  const endMs = performance.now() + seconds * 1e3;
  let posted = 0;
  let completed = 0;
  while (performance.now() < endMs) {
    for (; posted - completed < DEPTH; posted++) {
      const slot = posted % DEPTH;
      send(segments[slot]!.set(slot * SLOT_BYTES, bytes));
    }
    await done.wait();
    completed++;
  }
  for (; completed < posted; completed++) await done.wait();
}

async function run(call: Call): Promise<number> {
  switch (call.call) {
    case 'receive':
      return receive();
    case 'connect':
      await connect(call.to, call.srqn);
      return 0;
    case 'ping':
      await ping(call.seconds);
      return 0;
    case 'flood': {
      const startMs = performance.now();
      await flood(call.bytes, call.seconds);
      return (performance.now() - startMs) / 1e3;
    }
    case 'delayUs': {
      const found = median(delaysUs);
      delaysUs = [];
      return found;
    }
    case 'received': {
      const found = received;
      received = 0;
      return found;
    }
  }
}

process.on('message', (call: Call) => {
  run(call).then(
    (value) => process.send!({ value }),
    (error: unknown) => process.send!({ error: String(error) }),
  );
});
