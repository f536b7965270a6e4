/** A sender node: one connection, whatever the number of receivers behind it. */
import { DatDtoStatus, DatEventNumber, type Evd, type Ia, nameOf, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';

import { type Answer, MAX_BYTES, readAnswer, writeMessage, writeQuestion } from './message.js';
import { FIRST_PSN, MTU_BYTES } from './path.js';

export interface SenderOptions {
  readonly address: string;
  /** Of the receivers. */
  readonly to: string;
  /** Tells the senders apart. */
  readonly number: number;
  /** To each receiver. */
  readonly messages: number;
  readonly port: number;
}

/** Messages under way at a time. */
const DEPTH = 32;
/** A receiver that is slow is waited for (RNR). */
const PATIENT = { transport: { rnrRetryCount: 7 } };

export async function runSender(options: SenderOptions): Promise<void> {
  const { address, to, number, messages } = options;
  await using ia = await openIa(softroce({ addresses: [address] }));
  const pz = ia.createPz();
  const lmr = ia.allocate(DEPTH * MAX_BYTES, { pz });
  const evd = ia.createEvd({ qlen: 2 * DEPTH });
  const ep = ia.openXrcDomain().createInitiator({
    pz,
    requestEvd: evd,
    connectEvd: evd,
    attributes: { maxRequestDtos: DEPTH, ...PATIENT },
  });
  const { targetQpn, srqns } = await askReceivers(ia, options, ep.qpn);
  ep.attach({ address: to, targetQpn, sendPsn: FIRST_PSN, pathMtuBytes: MTU_BYTES });
  await evd.wait();

  const total = messages * srqns.length;
  const segments = Array.from({ length: DEPTH }, (_, i) => lmr.segment(i * MAX_BYTES, MAX_BYTES));
  let completed = 0;
  const post = (i: number, receiver: number, sequence: number): void => {
    const slot = i % DEPTH;
    const segment = segments[slot]!.set(slot * MAX_BYTES, MAX_BYTES);
    const length = writeMessage(segment.bytes, { sender: number, receiver, sequence });
    ep.toSrq(srqns[receiver]!).postSend(segment.set(slot * MAX_BYTES, length), i);
  };
  for (let i = 0; i < total; i++) {
    if (i - completed === DEPTH) completed += await completion(evd);
    post(i, i % srqns.length, Math.floor(i / srqns.length));
  }
  while (completed < total) completed += await completion(evd);
  // The first receiver keeps the target until it hears this; whether it still acknowledges it does
  // not matter.
  post(total, 0, messages);
  await evd.wait();
  console.log(`sender ${number}: ${total} messages to ${srqns.length} receivers, 1 queue pair`);
}

/** The numbers come with a rejection: no connection is wanted. */
async function askReceivers(
  ia: Ia,
  { to, port, number }: SenderOptions,
  initiatorQpn: number,
): Promise<Answer> {
  const evd = ia.createEvd({ qlen: 4 });
  const ep = ia.createEndpoint({
    pz: ia.createPz(),
    requestEvd: evd,
    recvEvd: evd,
    connectEvd: evd,
  });
  const privateData = writeQuestion({ sender: number, initiatorQpn });
  ep.connect({ address: to, connQual: port, privateData });
  const { event } = await evd.wait();
  if (event.type === 'connection' && event.number === DatEventNumber.PEER_REJECTED) {
    return readAnswer(event.privateData);
  }
  throw new Error(`no receivers: ${nameOf(DatEventNumber, event.number)}`);
}

/** One more request has completed. */
async function completion(evd: Evd): Promise<1> {
  const { event } = await evd.wait();
  if (event.type === 'dto' && event.status === DatDtoStatus.SUCCESS) return 1;
  const what = event.type === 'dto' ? nameOf(DatDtoStatus, event.status) : event.type;
  throw new Error(`a message was not delivered: ${what}`);
}
