/** One receiver, a process: the first one makes the targets, and all of them keep these. */
import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { Access, gidFromIp } from 'dapl/spi';
import { setTimeout as sleep } from 'node:timers/promises';

import { Board } from './board.js';
import { readQuestion, writeAnswer } from './message.js';
import { FIRST_PSN, MTU_BYTES } from './path.js';
import { Receiver } from './receiver.js';

export interface ReceiveOptions {
  readonly address: string;
  /** That the receivers' domain goes by, and that they write to (board.ts). */
  readonly domain: string;
  /** From 0. */
  readonly index: number;
  readonly receivers: number;
  readonly senders: number;
  /** Of each sender to each receiver. */
  readonly messages: number;
  readonly port: number;
}

const LOOK_MS = 10;

/** Runs until every sender has sent everything. */
export async function runReceive(options: ReceiveOptions): Promise<void> {
  const { address, domain, index, receivers, senders, messages } = options;
  const board = new Board(domain);
  board.mustBeFresh(index);
  const ia = await openIa(softroce({ addresses: [address], shared: true }));
  try {
    let failure: Error | undefined;
    const receiver = new Receiver(ia, index, messages, domain, (error) => (failure ??= error));
    board.write(['queue', index, receiver.srq.srqn]);
    const srqns = await board.queues(receivers);
    if (index === 0) answerSenders(receiver, board, srqns, options);
    const kept = new Set<number>();
    const isDone = (): boolean =>
      receiver.verified === messages * senders &&
      kept.size === senders &&
      (index > 0 || receiver.gone === senders);
    while (!isDone()) {
      if (failure) throw failure;
      // Each keeps the targets, so any of them may leave first.
      for (const qpn of board.targets()) {
        if (!kept.has(qpn)) receiver.domain.registerTarget(qpn);
        kept.add(qpn);
      }
      await sleep(LOOK_MS);
    }
    if (failure) throw failure;
    console.log(`receiver ${index}: ${receiver.verified} messages verified`);
    if (index === 0) console.log(countsOf(receivers, senders, kept.size));
  } finally {
    await ia.close('abrupt');
  }
}

/**
 * Senders ask by a connection request. The answer has the numbers; as a connection is not what is
 * wanted, it is a rejection.
 */
function answerSenders(
  { ia, domain }: Receiver,
  board: Board,
  srqns: readonly number[],
  { address, port }: ReceiveOptions,
): void {
  ia.createPsp({ connQual: port }).requests$.subscribe(({ cr }) => {
    const targetQpn = domain.createTarget({
      accessFlags: Access.REMOTE_WRITE,
      pkeyIndex: 0,
      portNumber: 1,
      addressVector: { gid: gidFromIp(cr.remoteAddress), localGidIndex: 0 },
      pathMtuBytes: MTU_BYTES,
      destinationQpn: readQuestion(cr.privateData).initiatorQpn,
      receivePsn: FIRST_PSN,
    });
    cr.reject({ privateData: writeAnswer({ targetQpn, srqns }) });
    board.write(['target', targetQpn]);
  });
  console.log(`${srqns.length} receivers at ${address}, port ${port}`);
}

/** Queue pairs of both ways to do it: here as they were, for plain RC as they would be. */
function countsOf(receivers: number, senders: number, targets: number): string {
  const row = (name: string, xrc: number, rc: number): string =>
    `${name.padEnd(32)}${String(xrc).padStart(6)}${String(rc).padStart(10)}`;
  return [
    `${'queue pairs'.padEnd(32)}${'XRC'.padStart(6)}${'plain RC'.padStart(10)}`,
    row('node of the receivers', targets, receivers * senders),
    row('each sender node', 1, receivers),
    row('in all', targets + senders, 2 * receivers * senders),
  ].join('\n');
}
