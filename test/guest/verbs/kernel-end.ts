/** The kernel's end: verbs-peer in a guest, told what to do over TCP. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';

import { nameOf, QpState, QpType, WcFlags, WcOpcode, WcStatus } from '../../../core/spi/index.js';
import type { RunningCommand } from '../command.js';
import type { Guest } from '../guest.js';
import { sourceDir } from '../paths.js';
import { LineParser } from '../protocol.js';
import { runDir } from '../sandbox.js';
import { patience } from '../../support/patience.js';
import {
  type Bind,
  type Completion,
  type Completions,
  type ConnectionWishes,
  type Domain,
  type Handle,
  type ManualConnection,
  type ManualEnd,
  type Pair,
  POLL_TIMEOUT_MS,
  type QueuePairSizes,
  type Region,
  type Request,
  type Segment,
  type Window,
} from './end.js';

const CONTROL_PORT = 7700;
const START_TIMEOUT_MS = 15_000;
/** What the kernel has in the flags where WITH_INV ought to be: its own bit for it. */
const KERNEL_WITH_INV = 4;

type Answer = Record<string, unknown> & { readonly error?: string };
type Waiting = (answer: Answer | undefined) => void;

export class KernelEnd implements ManualEnd {
  readonly name = 'rxe';
  readonly dialect = 'verbs';
  private readonly waiting: Waiting[] = [];
  private readonly datagramPairs = new Set<number>();

  private constructor(
    readonly address: string,
    private readonly control: Socket,
    private readonly program: RunningCommand,
  ) {
    const parser = new LineParser<Answer>();
    control.setEncoding('utf8').setNoDelay(true);
    control.on('data', (text: string) => {
      parser.push(text, (answer) => this.waiting.shift()?.(answer));
    });
    control.on('error', () => undefined);
    control.on('close', () => {
      for (const answer of this.waiting.splice(0)) answer(undefined);
    });
  }

  /** @param address the guest's, of the family that is to be used */
  static async start(guest: Guest, address: string): Promise<KernelEnd> {
    const program = guest.spawn(`${putVerbsPeer(guest)} ${guest.ipv4} ${CONTROL_PORT} ${address}`);
    await program.waitForOutput(/listening/, START_TIMEOUT_MS);
    const control = connect(CONTROL_PORT, guest.ipv4);
    await once(control, 'connect');
    return new KernelEnd(address, control, program);
  }

  async domain(): Promise<Domain> {
    return { id: Number((await this.ask('pd'))['id']) };
  }

  async region(domain: Domain, lengthBytes: number, access: number): Promise<Region> {
    const answer = await this.ask('region', domain.id, lengthBytes, access);
    return {
      id: Number(answer['id']),
      address: BigInt(String(answer['address'])),
      rkey: Number(answer['rkey']),
    };
  }

  async deregister(region: Region): Promise<void> {
    await this.ask('deregister', region.id);
  }

  async fill({ region, offset, length }: Segment, seed: number): Promise<void> {
    await this.ask('fill', region.id, offset, length, seed);
  }

  async digest({ region, offset, length }: Segment): Promise<number> {
    return Number((await this.ask('digest', region.id, offset, length))['digest']);
  }

  async put(region: Region, offset: number, value: bigint): Promise<void> {
    await this.ask('put', region.id, offset, 8, value);
  }

  async word(region: Region, offset: number): Promise<bigint> {
    return BigInt(String((await this.ask('word', region.id, offset, 8))['value']));
  }

  async window(domain: Domain): Promise<Window> {
    return { id: Number((await this.ask('window', domain.id))['id']) };
  }

  async queuePair(domain: Domain, type: QpType, sizes: QueuePairSizes): Promise<Pair> {
    const { depth, segments, inlineBytes } = sizes;
    const pair = pairOf(await this.ask('qp', domain.id, type, depth, segments, inlineBytes));
    if (type === QpType.UD) this.datagramPairs.add(pair.id);
    return pair;
  }

  async connect(pair: Pair, to: ManualConnection): Promise<void> {
    const path = [to.address, to.qpn, to.sendPsn, to.receivePsn, to.mtuBytes, to.access];
    const timers = [to.ackTimeout, to.retryCount, to.rnrRetryCount, to.minRnrTimer, to.reads];
    await this.ask('connect', pair.id, ...path, ...timers);
  }

  async datagrams(pair: Pair, qkey: number, sendPsn: number): Promise<void> {
    await this.ask('datagrams', pair.id, qkey, sendPsn);
  }

  async handle(domain: Domain, address: string): Promise<Handle> {
    return { id: Number((await this.ask('handle', domain.id, address))['id']) };
  }

  async state(pair: Pair): Promise<string> {
    return nameOf(QpState, Number((await this.ask('state', pair.id))['state']));
  }

  async toError(pair: Pair): Promise<void> {
    await this.ask('error', pair.id);
  }

  async listen(port: number): Promise<void> {
    await this.ask('listen', port);
  }

  async accept(domain: Domain, wishes: ConnectionWishes): Promise<Pair> {
    return pairOf(await this.ask('accept', ...wishWords(domain, wishes)));
  }

  async dial(to: string, port: number, domain: Domain, wishes: ConnectionWishes): Promise<Pair> {
    return pairOf(await this.ask('dial', to, port, ...wishWords(domain, wishes)));
  }

  async receive(pair: Pair, wr: number, segments: readonly Segment[]): Promise<void> {
    await this.ask('receive', pair.id, wr, ...segmentWords(segments));
  }

  async send(pair: Pair, request: Request): Promise<void> {
    const { opcode, flags = 2, wr, immediate = 0, remoteAddress = 0n, rkey = 0 } = request;
    const { compareAdd = 0n, swap = 0n, datagram, segments = [] } = request;
    const to = [datagram?.handle.id ?? 0, datagram?.qpn ?? 0, datagram?.qkey ?? 0];
    const remote = [immediate, remoteAddress, rkey, compareAdd, swap];
    await this.ask('send', pair.id, opcode, flags, wr, ...remote, ...to, ...segmentWords(segments));
  }

  async bind(pair: Pair, { wr, window, segment, access }: Bind): Promise<number> {
    const { region, offset, length } = segment;
    const words = [pair.id, 2, wr, window.id, access, region.id, offset, length];
    return Number((await this.ask('bind', ...words))['rkey']);
  }

  async post(pair: Pair): Promise<void> {
    await this.ask('post', pair.id);
  }

  async poll(
    pair: Pair,
    sends: number,
    receives: number,
    timeoutMs = POLL_TIMEOUT_MS,
  ): Promise<Completions> {
    const answer = await this.ask('poll', pair.id, sends, receives, patience(timeoutMs));
    const isDatagram = this.datagramPairs.has(pair.id);
    const list = (name: string): Completion[] =>
      (answer[name] as number[][]).map((fields) => completionOf(fields, isDatagram));
    return { sends: list('sends'), receives: list('receives') };
  }

  async close(): Promise<void> {
    this.control.destroy();
    await this.program.finish();
  }

  private ask(...words: readonly (string | number | bigint)[]): Promise<Answer> {
    const line = words.join(' ');
    return new Promise((resolve, reject) => {
      this.waiting.push((answer) => {
        if (answer !== undefined && answer.error === undefined) return resolve(answer);
        const said = `${this.program.stdout}${this.program.stderr}`;
        reject(new Error(`verbs-peer: ${line}: ${answer?.error ?? `it ended: ${said}`}`));
      });
      if (this.control.destroyed) this.waiting.pop()?.(undefined);
      else this.control.write(`${line}\n`);
    });
  }
}

/** Compiles verbs-peer once a run and puts it into a guest; returns its path there. */
function putVerbsPeer(guest: Guest): string {
  const program = join(runDir, 'verbs-peer');
  if (!existsSync(program)) {
    const folder = join(sourceDir, 'verbs-peer');
    const sources = readdirSync(folder).filter((name) => name.endsWith('.c'));
    const flags = ['-O2', '-Wall', '-Wextra', '-Werror', '-o', program];
    const paths = sources.map((name) => join(folder, name));
    execFileSync('gcc', [...flags, ...paths, '-lrdmacm', '-libverbs']);
  }
  return guest.put(program);
}

function pairOf(answer: Answer): Pair {
  return { id: Number(answer['id']), qpn: Number(answer['qpn']) };
}

function segmentWords(segments: readonly Segment[]): number[] {
  const words = segments.flatMap(({ region, offset, length }) => [region.id, offset, length]);
  return [segments.length, ...words];
}

function wishWords({ id }: Domain, wishes: ConnectionWishes): number[] {
  const { depth, segments, inlineBytes } = wishes.sizes;
  const { reads, rnrRetryCount, minRnrTimer } = wishes;
  return [id, depth, segments, inlineBytes, reads, rnrRetryCount, minRnrTimer];
}

function completionOf(fields: readonly number[], isDatagram: boolean): Completion {
  const [wr = 0, status = 0, opcode = 0, bytes = 0, flags = 0, immediate = 0, sourceQpn] = fields;
  const succeeded = status === WcStatus.SUCCESS;
  const isReceive = opcode >= WcOpcode.RECV;
  const carries = (flags & (WcFlags.WITH_IMM | WcFlags.WITH_INV | KERNEL_WITH_INV)) !== 0;
  return {
    wr,
    status: nameOf(WcStatus, status),
    opcode: succeeded ? nameOf(WcOpcode, opcode) : undefined,
    bytes: succeeded ? bytes : 0,
    immediate: succeeded && isReceive && carries ? immediate : undefined,
    // rxe says GRH of connected queue pairs too.
    sourceQpn: succeeded && isReceive && isDatagram ? sourceQpn : undefined,
  };
}
