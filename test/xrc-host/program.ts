/**
 * A program that has an XRC domain in common with others, or sends to them; it does what each line
 * of its input says:
 *
 *     open ADDRESS [alone]         the device
 *     domain KEY MODE              the domain
 *     queue                        a receive queue, with 16 receives; answers its number
 *     ordinary                     registers ordinary memory in the queue's zone
 *     target ADDRESS QPN [domain]  a target for that initiator; answers its number
 *     listen PORT [domain]         accepts connection requests of initiators
 *     accepted COUNT               waits for so many targets of these; answers their numbers
 *     register QPN, unregister QPN
 *     query QPN                    its state
 *     received COUNT               waits for so many messages in all; answers them
 *     told COUNT                   waits for so many events of targets; answers all
 *     mark COUNT                   arms the queue's low watermark
 *     marked COUNT                 waits for so many events of the queue; answers all
 *     window                       address and key of the memory, for RDMA Write
 *     bytes                        what the memory begins with
 *     initiator                    answers its QPN
 *     attach ADDRESS QPN           to that target
 *     connect ADDRESS PORT         answers how it ended
 *     ended                        waits for the next event of the connection; answers its name
 *     send SRQN TEXT               answers how it ended
 *     write SRQN ADDRESS KEY TEXT
 *     leave                        closes the domain
 *     close                        closes the device
 *     lag                          for how long the event loop stood still, at most, in ms,
 *                                  since this was asked last
 */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  AsyncErrorReason,
  DatDtoStatus,
  DatEventNumber,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  nameOf,
  openIa,
  type Pz,
  RemoteSegment,
  type XrcDomain,
  type XrcInitiator,
  type XrcSrq,
} from '../../core/index.js';
import { Access, gidFromIp, nameOf as nameOfCode, QpState } from '../../core/spi/index.js';
import { softroce } from '../../providers/softroce/index.js';

const PSN = 0x123456;
const MTU_BYTES = 1024;
const SLOT_BYTES = 256;
const RECEIVES = 16;
const LOOK_MS = 5;
const TICK_MS = 10;
const TRANSPORT = { minRnrTimer: 14, rnrRetryCount: 7, ackTimeout: 14, retryCount: 5 };

let ia: Ia;
let domain: XrcDomain;
let pz: Pz;
let memory: Lmr;
let srq: XrcSrq;
let initiator: XrcInitiator;
let sends: Evd;
const received: string[] = [];
const told: string[] = [];
const marked: string[] = [];
const accepted: string[] = [];

let longestMs = 0;
let tickMs = performance.now();
setInterval(() => {
  longestMs = Math.max(longestMs, performance.now() - tickMs - TICK_MS);
  tickMs = performance.now();
}, TICK_MS).unref();

async function atLeast(list: readonly string[], count: number): Promise<string> {
  while (list.length < count) await sleep(LOOK_MS);
  return list.join(',');
}

function makeQueue(): number {
  pz = ia.createPz();
  memory = ia.allocate(RECEIVES * SLOT_BYTES, {
    pz,
    privileges: MemPrivileges.ALL,
    shared: `xrc ${process.pid}`,
  });
  srq = domain.createSrq({ pz, maxRecvDtos: RECEIVES });
  const places = Array.from({ length: RECEIVES }, (_, i) =>
    memory.segment(i * SLOT_BYTES, SLOT_BYTES),
  );
  srq.completions$.subscribe(({ cookie, status, transferredLength }) => {
    const place = places[cookie]!;
    const text = new TextDecoder().decode(place.bytes.subarray(0, transferredLength));
    received.push(status === DatDtoStatus.SUCCESS ? text : nameOf(DatDtoStatus, status));
    if (status === DatDtoStatus.SUCCESS) srq.postRecv(place, cookie);
  });
  for (const [cookie, place] of places.entries()) srq.postRecv(place, cookie);
  return srq.srqn;
}

async function outcome(): Promise<string> {
  const { event } = await sends.wait();
  return event.type === 'dto' ? nameOf(DatDtoStatus, event.status) : event.type;
}

async function connectionEvent(): Promise<string> {
  const { event } = await sends.wait();
  return nameOf(DatEventNumber, event.number);
}

function outbox(text: string): ReturnType<Lmr['segment']> {
  const bytes = new TextEncoder().encode(text);
  memory.bytes.set(bytes);
  return memory.segment(0, bytes.length);
}

const commands: Readonly<Record<string, (...words: string[]) => unknown>> = {
  async open(address = '', how = '') {
    ia = await openIa(softroce({ addresses: [address], shared: how !== 'alone', shm: false }));
    ia.async$.subscribe((event) => {
      if (event.type === 'async-error' && event.object === srq) {
        marked.push(nameOf(AsyncErrorReason.SRQ, event.reason));
      }
      if (event.type !== 'xrc-target' || event.event === 'COMM_EST') return;
      told.push(`${event.targetQpn} ${event.event}`);
    });
    return 'open';
  },
  async domain(key = '', mode = 'create') {
    domain = await ia.openXrcDomain({ key, mode: mode as 'create' });
    return 'domain';
  },
  queue: makeQueue,
  ordinary() {
    ia.allocate(64, { pz });
    return 'registered';
  },
  target(address = '', qpn = '', owner = 'consumer') {
    return domain.createTarget(
      {
        accessFlags: Access.REMOTE_WRITE | Access.REMOTE_READ,
        pkeyIndex: 0,
        portNumber: 1,
        addressVector: { gid: gidFromIp(address), localGidIndex: 0 },
        pathMtuBytes: MTU_BYTES,
        destinationQpn: Number(qpn),
        receivePsn: PSN,
        minRnrTimer: 14,
        maxDestRdAtomic: 4,
      },
      { owner: owner as 'consumer' },
    );
  },
  listen(port = '', owner = 'consumer') {
    ia.createPsp({ connQual: Number(port), xrc: true }).requests$.subscribe(({ cr }) => {
      const privateData = Buffer.from(String(srq.srqn));
      const options = { owner: owner as 'consumer', privateData };
      accepted.push(String(domain.accept(cr, options)));
    });
    return 'listening';
  },
  accepted: (count) => atLeast(accepted, Number(count)),
  register(qpn) {
    domain.registerTarget(Number(qpn));
    return 'registered';
  },
  unregister(qpn) {
    domain.unregisterTarget(Number(qpn));
    return 'unregistered';
  },
  query: (qpn) => nameOfCode(QpState, domain.queryTarget(Number(qpn)).state!),
  mark(count) {
    srq.setLowWatermark(Number(count));
    return 'armed';
  },
  received: (count) => atLeast(received, Number(count)),
  told: (count) => atLeast(told, Number(count)),
  marked: (count) => atLeast(marked, Number(count)),
  window: () => `${memory.address} ${memory.rmrContext}`,
  bytes: () => new TextDecoder().decode(memory.bytes.subarray(SLOT_BYTES, SLOT_BYTES + 5)),
  async initiator() {
    pz = ia.createPz();
    memory = ia.allocate(4096, { pz });
    sends = ia.createEvd({ qlen: 16 });
    const own = await ia.openXrcDomain();
    initiator = own.createInitiator({
      pz,
      requestEvd: sends,
      connectEvd: sends,
      attributes: { transport: TRANSPORT },
    });
    return initiator.qpn;
  },
  async attach(address = '', qpn) {
    const targetQpn = Number(qpn);
    initiator.attach({ address, targetQpn, sendPsn: PSN, pathMtuBytes: MTU_BYTES });
    return outcome();
  },
  connect(address = '', port = '') {
    initiator.connect({ address, connQual: Number(port) });
    return connectionEvent();
  },
  ended: connectionEvent,
  send(srqn, text = '') {
    initiator.toSrq(Number(srqn)).postSend(outbox(text), 1);
    return outcome();
  },
  write(srqn, address = '', key = '', text = '') {
    const remote = new RemoteSegment({
      address: BigInt(address) + BigInt(SLOT_BYTES),
      rmrContext: Number(key),
    });
    initiator.toSrq(Number(srqn)).postRdmaWrite(outbox(text), 2, remote);
    return outcome();
  },
  leave() {
    srq.free();
    domain.close();
    return 'left';
  },
  lag() {
    const lagMs = Math.round(longestMs);
    longestMs = 0;
    return lagMs;
  },
  async close() {
    await ia.close('abrupt');
    return 'closed';
  },
};

createInterface(process.stdin).on('line', (line) => {
  const [command = '', ...words] = line.split(' ');
  const run = async (): Promise<unknown> => commands[command]!(...words);
  run().then(
    (said) => console.log(String(said)),
    (error: unknown) => {
      const { code = '', message = '' } = error as Record<string, string>;
      console.log(`${code}: ${message.split('\n')[0]}`);
    },
  );
});
