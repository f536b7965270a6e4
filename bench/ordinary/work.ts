/** The work of both sides of a row. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job, Link, Program } from './link.js';

/** The first byte of a message behind which nothing comes; it is answered. */
const LAST = 1;

/** Times in microseconds. */
export interface Count {
  readonly messages: number;
  /** From one message to the next; of paced requests, their mean latency. */
  readonly meanUs: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly seconds: number;
}

/** Delays that tests plant into a server, before an answer. */
export type Plant = (() => Promise<unknown> | void) | undefined;

/** The server's part of a connection. */
export async function serve(link: Link, job: Job, plant?: Plant): Promise<void> {
  try {
    for (;;) {
      const message = await link.receive();
      if (job.work === 'send' && message[0] !== LAST) continue;
      if (plant !== undefined) await plant();
      const answered = link.send(job.isJson ? answerTo(message) : message);
      // A program with one request at a time awaits its answers, as README's does.
      if (job.depth === 1) await answered;
      else answered.catch(() => undefined);
    }
  } catch {
    await link.close().catch(() => undefined);
  }
}

function answerTo(message: Uint8Array): Buffer {
  const { id, text } = JSON.parse(Buffer.from(message).toString()) as Question;
  return Buffer.from(JSON.stringify({ id, text }));
}

interface Question {
  readonly id: number;
  readonly text: string;
}

/** The client: its connections, and work over them for a time or a number of messages. */
export class Client {
  private readonly links: Link[] = [];
  private readonly payload: Buffer;

  constructor(
    private readonly program: Program,
    private readonly job: Job,
    private readonly port: number,
  ) {
    this.payload = Buffer.alloc(job.bytes);
  }

  async connect(): Promise<void> {
    const { connections, work } = this.job;
    for (let i = 0; i < connections && work !== 'connect'; i++) {
      this.links.push(await this.program.connect(this.job, this.port));
    }
  }

  /** @param most messages; Infinity for a time alone */
  async run(seconds: number, most = Infinity): Promise<Count> {
    if (this.job.work === 'paced') return this.paced(seconds);
    return this.repeat(seconds, most);
  }

  /** A window of the warm-up, in which paced requests follow one another at once. */
  async window(seconds: number): Promise<number> {
    return (await this.repeat(seconds, Infinity)).meanUs;
  }

  private async repeat(seconds: number, most: number): Promise<Count> {
    const { job, links } = this;
    const { work, depth } = job;
    const times: number[] = [];
    const start = performance.now();
    const endMs = start + seconds * 1000;
    let begun = 0;
    const lane = async (link: Link): Promise<void> => {
      let fromMs = performance.now();
      while (begun < most && (fromMs < endMs || times.length === 0)) {
        begun += 1;
        if (work === 'connect') await this.connectAndClose();
        else if (work === 'send') await link.send(this.payload);
        else await this.ask(link);
        const nowMs = performance.now();
        times.push((nowMs - fromMs) * 1000);
        fromMs = nowMs;
      }
    };
    const over = work === 'connect' ? [{} as Link] : links;
    await Promise.all(over.flatMap((link) => Array.from({ length: depth }, () => lane(link))));
    // A stream ends when the peer has all of it.
    if (work === 'send') {
      const last = Buffer.alloc(job.bytes, LAST);
      await Promise.all(links.map((link) => Promise.all([link.send(last), link.receive()])));
    }
    const elapsedUs = (performance.now() - start) * 1000;
    return countOf(times, elapsedUs / times.length, elapsedUs / 1e6);
  }

  private async paced(seconds: number): Promise<Count> {
    const { rate } = this.job;
    const [link] = this.links as [Link];
    const times: number[] = [];
    const open: Promise<void>[] = [];
    const start = performance.now();
    for (let i = 0; i < seconds * rate; i++) {
      const dueMs = start + (i * 1000) / rate;
      const early = dueMs - performance.now();
      if (early > 0) await sleep(early);
      open.push(this.ask(link).then(() => void times.push((performance.now() - dueMs) * 1000)));
    }
    await Promise.all(open);
    const sum = times.reduce((a, b) => a + b, 0);
    return countOf(times, sum / times.length, (performance.now() - start) / 1000);
  }

  private async ask(link: Link): Promise<void> {
    const { isJson } = this.job;
    const message = isJson ? JSON.stringify({ id: 1_000_000, text: 'of 30 B' }) : undefined;
    await link.send(message === undefined ? this.payload : Buffer.from(message));
    const answer = await link.receive();
    if (isJson) JSON.parse(Buffer.from(answer).toString());
  }

  private async connectAndClose(): Promise<void> {
    await (await this.program.connect(this.job, this.port)).close();
  }
}

function countOf(times: number[], meanUs: number, seconds: number): Count {
  times.sort((a, b) => a - b);
  const at = (part: number): number => times[Math.floor(part * (times.length - 1))] ?? NaN;
  return { messages: times.length, meanUs, p50Us: at(0.5), p99Us: at(0.99), seconds };
}
