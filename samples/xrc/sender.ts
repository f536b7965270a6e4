/** A sender node: one connection for any number of receivers behind it. */
import { DatDtoStatus, DatEventNumber, type Evd, nameOf, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';

import { introduce, MAX_BYTES, queuesOf, writeMessage } from './message.js';

export interface SenderOptions {
  readonly address: string;
  /** Address of the receivers. */
  readonly to: string;
  /** Number of this sender, unique among them. */
  readonly number: number;
  /** Messages to each receiver. */
  readonly messages: number;
  readonly port: number;
}

/** Messages in flight. */
const DEPTH = 32;
/** Retries for ever if a slow receiver has no receive posted (RNR). */
const PATIENT = { transport: { rnrRetryCount: 7 } };

export async function runSender(options: SenderOptions): Promise<void> {
  const { address, to, number, messages, port } = options;
  await using ia = await openIa(softroce({ addresses: [address] }));
  const pz = ia.createPz();
  const lmr = ia.allocate(DEPTH * MAX_BYTES, { pz });
  const evd = ia.createEvd({ qlen: 2 * DEPTH });
  const own = await ia.openXrcDomain();
  const ep = own.createInitiator({
    pz,
    requestEvd: evd,
    connectEvd: evd,
    attributes: { maxRequestDtos: DEPTH, ...PATIENT },
  });
  ep.connect({ address: to, connQual: port, privateData: introduce(number) });
  const srqns = await queuesBehind(evd);

  const total = messages * srqns.length;
  const segments = Array.from({ length: DEPTH }, (_, i) => lmr.segment(i * MAX_BYTES, MAX_BYTES));
  let completed = 0;
  for (let i = 0; i < total; i++) {
    if (i - completed === DEPTH) completed += await completion(evd);
    const receiver = i % srqns.length;
    const sequence = Math.floor(i / srqns.length);
    const slot = i % DEPTH;
    const segment = segments[slot]!.set(slot * MAX_BYTES, MAX_BYTES);
    const length = writeMessage(segment.bytes, { sender: number, receiver, sequence });
    ep.toSrq(srqns[receiver]!).postSend(segment.set(slot * MAX_BYTES, length), i);
  }
  while (completed < total) completed += await completion(evd);
  ep.disconnect('graceful');
  while ((await evd.wait()).event.number !== DatEventNumber.DISCONNECTED);
  console.log(`sender ${number}: ${total} messages to ${srqns.length} receivers, 1 queue pair`);
}

/** The result of connecting: the queue numbers in the answer. */
async function queuesBehind(evd: Evd): Promise<number[]> {
  const { event } = await evd.wait();
  if (event.type === 'connection' && event.number === DatEventNumber.ESTABLISHED) {
    return queuesOf(event.privateData);
  }
  throw new Error(`no connection: ${nameOf(DatEventNumber, event.number)}`);
}

/** Waits for one more completion. */
async function completion(evd: Evd): Promise<1> {
  const { event } = await evd.wait();
  if (event.type === 'dto' && event.status === DatDtoStatus.SUCCESS) return 1;
  const what = event.type === 'dto' ? nameOf(DatDtoStatus, event.status) : event.type;
  throw new Error(`a message was not delivered: ${what}`);
}
