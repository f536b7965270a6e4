/** A DAT end over the verbs provider in a guest (peer/verbs-end.ts), told what to do over TCP. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';

import type { RunningCommand } from '../command.js';
import type { Guest } from '../guest.js';
import { repositoryRoot } from '../paths.js';
import { LineParser } from '../protocol.js';
import type {
  Bind,
  Completions,
  ConnectionWishes,
  Domain,
  Pair,
  Region,
  Request,
  Segment,
  VerbsEnd,
  Window,
} from './end.js';
import { fromWire, toWire } from './wire-values.js';

const PROGRAM = join(repositoryRoot, 'dist', 'test', 'guest', 'peer', 'verbs-end.js');
const CONTROL_PORT = 7701;
/** Node takes seconds to start under emulation, and a minute on a machine with other work. */
const START_TIMEOUT_MS = 180_000;
const END_TIMEOUT_MS = 60_000;

/** What the guest answers to a call. */
interface Answer {
  readonly value?: unknown;
  readonly error?: string;
}

export class RemoteEnd implements VerbsEnd {
  readonly name = 'verbs';
  readonly dialect = 'dat';
  private readonly waiting: ((answer: Answer) => void)[] = [];

  private constructor(
    private readonly control: Socket,
    private readonly program: RunningCommand,
  ) {
    const parser = new LineParser<unknown>();
    control.setEncoding('utf8').setNoDelay(true);
    control.on('data', (text: string) => {
      parser.push(text, (answer) => this.waiting.shift()?.(fromWire(answer) as Answer));
    });
    control.on('error', () => undefined);
    control.on('close', () => {
      const error = `it ended: ${program.stdout}${program.stderr}`;
      for (const answer of this.waiting.splice(0)) answer({ error });
    });
  }

  /** @param address the guest's, of the family that is to be used */
  static async start(guest: Guest, address: string): Promise<RemoteEnd> {
    const words = `'${process.execPath}' '${PROGRAM}' ${guest.ipv4} ${CONTROL_PORT} ${address}`;
    const program = guest.spawn(`exec ${words}`, { cwd: repositoryRoot });
    await program.waitForOutput(/^listening/m, START_TIMEOUT_MS);
    const control = connect(CONTROL_PORT, guest.ipv4);
    await once(control, 'connect');
    return new RemoteEnd(control, program);
  }

  domain = (): Promise<Domain> => this.ask('domain');
  region = (domain: Domain, lengthBytes: number, access: number): Promise<Region> =>
    this.ask('region', domain, lengthBytes, access);
  deregister = (region: Region): Promise<void> => this.ask('deregister', region);
  fill = (segment: Segment, seed: number): Promise<void> => this.ask('fill', segment, seed);
  digest = (segment: Segment): Promise<number> => this.ask('digest', segment);
  put = (region: Region, offset: number, value: bigint): Promise<void> =>
    this.ask('put', region, offset, value);
  word = (region: Region, offset: number): Promise<bigint> => this.ask('word', region, offset);
  window = (domain: Domain): Promise<Window> => this.ask('window', domain);
  listen = (port: number): Promise<void> => this.ask('listen', port);
  accept = (domain: Domain, wishes: ConnectionWishes): Promise<Pair> =>
    this.ask('accept', domain, wishes);
  dial = (to: string, port: number, domain: Domain, wishes: ConnectionWishes): Promise<Pair> =>
    this.ask('dial', to, port, domain, wishes);
  receive = (pair: Pair, wr: number, segments: readonly Segment[]): Promise<void> =>
    this.ask('receive', pair, wr, segments);
  send = (pair: Pair, request: Request): Promise<void> => this.ask('send', pair, request);
  bind = (pair: Pair, bind: Bind): Promise<number> => this.ask('bind', pair, bind);
  post = (pair: Pair): Promise<void> => this.ask('post', pair);
  poll = (pair: Pair, sends: number, receives: number, timeoutMs?: number): Promise<Completions> =>
    this.ask('poll', pair, sends, receives, timeoutMs);
  /** How the connection ended: the name of its last event. */
  ended = (pair: Pair): Promise<string> => this.ask('ended', pair);

  async close(): Promise<void> {
    this.control.end();
    await this.program.finish(END_TIMEOUT_MS);
  }

  private ask<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    return new Promise((resolve, reject) => {
      this.waiting.push(({ value, error }) => {
        if (error === undefined) resolve(value as T);
        else reject(new Error(`verbs-end: ${method}: ${error}`));
      });
      if (this.control.destroyed) this.waiting.pop()?.({ error: 'it has ended' });
      else this.control.write(`${toWire({ method, args })}\n`);
    });
  }
}
