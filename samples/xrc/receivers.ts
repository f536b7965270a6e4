/** The node of receivers: several adapters on one device, and one target for each sender node. */
import { type Ia, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';

import { listQueues } from './message.js';
import { Receiver } from './receiver.js';

export interface ReceiversOptions {
  readonly address: string;
  readonly receivers: number;
  readonly senders: number;
  /** Of each sender to each receiver. */
  readonly messages: number;
  readonly port: number;
}

/** Runs until every sender has come, sent everything and gone. */
export async function runReceivers(options: ReceiversOptions): Promise<void> {
  const ias: Ia[] = [];
  try {
    for (let i = 0; i < options.receivers; i++) {
      ias.push(await openIa(softroce({ addresses: [options.address] })));
    }
    await serve(ias, options);
  } finally {
    for (const ia of ias) await ia.close('abrupt');
  }
}

function serve(ias: readonly Ia[], options: ReceiversOptions): Promise<void> {
  const { senders, messages, port, address } = options;
  const expected = senders * messages * ias.length;
  return new Promise((resolve, reject) => {
    let verified = 0;
    let gone = 0;
    /** One for each connection. */
    const targets = new Set<number>();
    const receivers = ias.map(
      (ia, index) =>
        new Receiver(ia, index, (error) => {
          if (error) reject(error);
          else if (++verified === expected && gone === senders) done();
        }),
    );
    const [first] = receivers as [Receiver];
    const done = (): void => {
      console.log(`${verified} messages verified, by ${receivers.length} receivers`);
      console.log(countsOf(receivers.length, senders, targets.size));
      resolve();
    };
    // One of them answers for all; each keeps the target, so any of them may leave first.
    first.ia.createPsp({ connQual: port }).requests$.subscribe(({ cr }) => {
      const privateData = listQueues(receivers.map(({ srq }) => srq.srqn));
      const target = first.domain.accept(cr, { privateData });
      for (const { domain } of receivers) domain.registerTarget(target);
      targets.add(target);
    });
    first.ia.async$.subscribe((event) => {
      if (event.type !== 'xrc-target' || event.event !== 'DISCONNECTED') return;
      for (const { domain } of receivers) domain.unregisterTarget(event.targetQpn);
      if (++gone === senders && verified === expected) done();
    });
    console.log(`${receivers.length} receivers at ${address}, port ${port}`);
  });
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
