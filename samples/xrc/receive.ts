/** One receiver process. The first one accepts the senders; all of them keep the targets. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  DatDtoStatus,
  DatError,
  type Ia,
  MemPrivileges,
  nameOf,
  openIa,
  type XrcDomain,
  type XrcSrq,
} from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { listQueues, MAX_BYTES, readMessage } from './message.js';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';

/** Depth of a receiver's queue. Senders address the queue by its number, in the file's domain. */
const RECEIVES = 64;

class Receiver {
  readonly srq: XrcSrq;
  verified = 0;
  /** Next sequence number of each sender. */
  private readonly next = new Map<number, number>();

  /**
   * @param domain that the receivers share
   * @param onVerified called for each message, or with an error
   */
  constructor(
    readonly ia: Ia,
    readonly index: number,
    readonly domain: XrcDomain,
    onVerified: (error?: Error) => void,
  ) {
    const pz = ia.createPz();
    const privileges = MemPrivileges.LOCAL_READ | MemPrivileges.LOCAL_WRITE;
    // The process that hosts the domain writes received data into this shared memory.
    const shared = `samples/xrc ${process.pid}`;
    const lmr = ia.allocate(RECEIVES * MAX_BYTES, { pz, privileges, shared });
    this.srq = domain.createSrq({ pz, maxRecvDtos: RECEIVES });
    const places = Array.from({ length: RECEIVES }, (_, i) =>
      lmr.segment(i * MAX_BYTES, MAX_BYTES),
    );
    this.srq.burst(() => {
      for (const [cookie, place] of places.entries()) this.srq.postRecv(place, cookie);
    });
    this.srq.completions$.subscribe(({ cookie, status, transferredLength }) => {
      const place = places[cookie];
      if (place === undefined || status !== DatDtoStatus.SUCCESS) {
        onVerified(new Error(`a receive ended as ${nameOf(DatDtoStatus, status)}`));
        return;
      }
      try {
        this.check(place.bytes.subarray(0, transferredLength));
        this.srq.postRecv(place, cookie);
        onVerified();
      } catch (error) {
        onVerified(error as Error);
      }
    });
  }

  private check(bytes: Uint8Array): void {
    const { sender, receiver, sequence } = readMessage(bytes);
    const expected = this.next.get(sender) ?? 0;
    if (receiver !== this.index || sequence !== expected) {
      throw new Error(
        `receiver ${this.index} got message ${sequence} of sender ${sender} to ${receiver}; ` +
          `message ${expected} was next`,
      );
    }
    this.next.set(sender, expected + 1);
    this.verified++;
  }
}

export interface ReceiveOptions {
  readonly address: string;
  /** The file that names the receivers' domain, and that they write notices to (board.ts). */
  readonly domain: string;
  /** Number of this receiver, from 0. */
  readonly index: number;
  readonly receivers: number;
  readonly senders: number;
  /** Messages of each sender to each receiver. */
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
    const shared = await ia.openXrcDomain({ key: domain });
    const receiver = new Receiver(ia, index, shared, (error) => (failure ??= error));
    board.write(['queue', index, receiver.srq.srqn]);
    const srqns = await board.queues(receivers);
    let gone = 0;
    if (index === 0) acceptSenders(receiver, board, srqns, () => gone++, options);
    const kept = new Set<number>();
    const isDone = (): boolean =>
      receiver.verified === messages * senders &&
      kept.size === senders &&
      (index > 0 || gone === senders);
    while (!isDone()) {
      if (failure) throw failure;
      // Each receiver keeps the targets, so any of them may exit first.
      for (const qpn of board.targets()) {
        if (!kept.has(qpn)) keep(receiver, qpn);
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

function keep({ domain }: Receiver, targetQpn: number): void {
  try {
    domain.registerTarget(targetQpn);
  } catch (error) {
    // Its sender and all receivers have released it: all messages have arrived by then.
    if (!(error instanceof DatError) || error.code !== 'DAT_INVALID_PARAMETER') throw error;
  }
}

/**
 * Accepts the senders. Their connections belong to the domain: the other receivers keep them, too.
 */
function acceptSenders(
  { ia, domain }: Receiver,
  board: Board,
  srqns: readonly number[],
  onGone: () => void,
  { address, port }: ReceiveOptions,
): void {
  ia.createPsp({ connQual: port, xrc: true }).requests$.subscribe(({ cr }) => {
    board.write(['target', domain.accept(cr, { privateData: listQueues(srqns) })]);
  });
  ia.async$.subscribe((event) => {
    if (event.type === 'xrc-target' && event.event === 'DISCONNECTED') onGone();
  });
  console.log(`${srqns.length} receivers at ${address}, port ${port}`);
}

/** Number of queue pairs: as used here, and as plain RC would need. */
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

export type Line =
  readonly ['queue', index: number, srqn: number] | readonly ['target', qpn: number];

/**
 * A notice board of the receivers: the file that names their domain, one line for each notice. The
 * content of the file does not matter to the domain.
 */
export class Board {
  constructor(readonly file: string) {
    if (!existsSync(file)) writeFileSync(file, '', { flag: 'a' });
  }

  write(line: Line): void {
    appendFileSync(this.file, `${line.join(' ')}\n`);
  }

  /** Numbers of the receivers' queues, once all are known. */
  async queues(count: number): Promise<number[]> {
    for (;;) {
      const srqns: number[] = [];
      for (const line of this.lines()) if (line[0] === 'queue') srqns[line[1]] = line[2];
      if (Object.keys(srqns).length === count) return srqns;
      await sleep(LOOK_MS);
    }
  }

  /** Numbers of the targets that are known so far. */
  targets(): number[] {
    return this.lines().flatMap((line) => (line[0] === 'target' ? [line[1]] : []));
  }

  /** @throws Error if the file belongs to another run */
  mustBeFresh(index: number): void {
    const isTaken = this.lines().some((line) => line[0] === 'queue' && line[1] === index);
    if (isTaken) throw new Error(`${this.file} has a receiver ${index} already: take a new file`);
  }

  /** Complete lines of the file: each line is written at once. */
  private lines(): Line[] {
    const text = readFileSync(this.file, 'utf8');
    const whole = text
      .slice(0, text.lastIndexOf('\n') + 1)
      .split('\n')
      .slice(0, -1);
    return whole.map((line) => {
      const [kind, ...numbers] = line.split(' ');
      return [kind, ...numbers.map(Number)] as unknown as Line;
    });
  }
}
