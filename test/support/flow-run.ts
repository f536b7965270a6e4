/**
 * One random life of a connection on mock, by seed: sends, receives, cancelled waits, timeouts,
 * closes, cuts and loss in any order. What it finds wrong is returned, in words.
 */
import {
  connect,
  type Connection,
  FlowError,
  listen,
  type Message,
} from '../../core/flow/index.js';
import { type Ia, openIa } from '../../core/index.js';
import { Fabric, mock } from '../../providers/mock/index.js';
import { CLIENT, leftOf, NOTHING_LEFT, PORT, SERVER } from './flow-scene.js';

/** How long everything may take to end once both sides have closed: of virtual time. */
const PATIENCE_US = 30_000_000;
const STEPS = 24;
const EXPECTED: readonly string[] = [
  'DAT_TIMEOUT_EXPIRED',
  'DAT_INTERRUPTED_CALL',
  'DAT_CONN_CLOSED',
  'DAT_CONN_ENDED',
  'DAT_CONN_BROKEN',
];

type Ending = 'closes' | 'closes at once' | 'is cut off' | 'adapter closes';
const ENDINGS: readonly Ending[] = ['closes', 'closes at once', 'is cut off', 'adapter closes'];

/** A small generator (mulberry32): the same numbers for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** What has become of the messages of one direction. */
class Direction {
  /** By number: whether it may, must or must not arrive. */
  readonly fates: ('may' | 'must' | 'must not')[] = [];
  readonly arrived: number[] = [];
  /** The receiver has closed by itself: what it has not taken is dropped. */
  isDropping = false;

  constructor(private readonly name: string) {}

  check(faults: string[]): void {
    const { name, fates, arrived } = this;
    for (let i = 1; i < arrived.length; i++) {
      const [before, after] = [arrived[i - 1] as number, arrived[i] as number];
      if (after === before) faults.push(`${name}: message ${after} came twice`);
      else if (after < before) faults.push(`${name}: message ${after} came behind ${before}`);
    }
    fates.forEach((fate, number) => {
      const came = arrived.includes(number);
      if (came && fate === 'must not') faults.push(`${name}: ${number} came, and was not sent`);
      if (!came && fate === 'must' && !this.isDropping) faults.push(`${name}: ${number} is lost`);
    });
  }
}

export class FlowRun {
  private readonly random: (below: number) => number;
  private readonly fabric: Fabric;
  private readonly faults: string[] = [];
  private readonly there = new Direction('there');
  private readonly back = new Direction('back');
  private readonly held: Message[] = [];
  /** Messages of the side that closes whose wait has no bounds. */
  private readonly unbounded: number[] = [];
  private pending = 0;
  private readonly bufferBytes: number;

  constructor(seed: number) {
    this.random = randomOf(seed);
    this.bufferBytes = 8 + this.random(200);
    const lossPercent = [0, 0, 2, 10][this.random(4)] as number;
    this.fabric = new Fabric({ seed, autoRun: true, link: { lossPercent } });
  }

  /** @returns what is wrong; nothing when all is well */
  async run(): Promise<readonly string[]> {
    const { fabric } = this;
    const client = await openIa(mock({ fabric, address: CLIENT }));
    const server = await openIa(mock({ fabric, address: SERVER }));
    try {
      await this.between(client, server);
    } finally {
      await Promise.all([client.close(), server.close()]);
    }
    return this.faults;
  }

  private async between(client: Ia, server: Ia): Promise<void> {
    const { fabric, random } = this;
    const receives = {
      buffers: 1 + random(3),
      bufferBytes: this.bufferBytes,
      lend: random(2) === 0,
    };
    const options = { receives, requests: 1 + random(3), keepAliveMs: 1000 };
    const listener = await listen(server, { port: PORT, ...options });
    const [near, far] = await Promise.all([
      connect(client, { address: SERVER, port: PORT, ...options }),
      listener.accept(),
    ]);
    await Promise.all([
      this.live(near, this.there, this.back),
      this.live(far, this.back, this.there),
    ]);
    const ending = ENDINGS[random(ENDINGS.length)] as Ending;
    if (ending === 'is cut off') fabric.partition([CLIENT], [SERVER]);
    const waiting = this.waitFor(near, this.back);
    // A side that closes sends what it has been asked for, to a peer that takes it.
    await Promise.all([
      this.endOf(near, this.back, ending, client),
      this.takeRest(far, this.there),
      waiting,
    ]);
    if (ending === 'closes') this.checkSent();
    await this.watched('far.close', far.close());
    await this.watched('near.close', near.close());
    await this.settled();
    for (const message of this.held.splice(0)) if (!message.isReleased) message.release();
    await listener.close();
    if (ending !== 'adapter closes') this.checkLeft('client', client);
    this.checkLeft('server', server);
    this.there.check(this.faults);
    this.back.check(this.faults);
  }

  /** Steps of one side, not all of which wait for the one before. */
  private async live(conn: Connection, out: Direction, into: Direction): Promise<void> {
    for (let step = 0; step < STEPS; step++) {
      switch (this.random(5)) {
        case 0:
        case 1:
          void this.send(conn, out);
          break;
        case 2:
        case 3:
          await this.receive(conn, into);
          break;
        default:
          await this.sleep(this.random(3000));
      }
      if (this.random(3) === 0) this.held.shift()?.[Symbol.dispose]();
    }
  }

  /** A wait that is bounded in one way or another, or not at all. */
  private bounds(always: boolean): { timeoutMs?: number; signal?: AbortSignal } {
    const choice = this.random(always ? 2 : 4);
    if (choice === 0) return { timeoutMs: this.random(40) / 10 };
    if (choice > 1) return {};
    const abort = new AbortController();
    void this.sleep(this.random(4000)).then(() => abort.abort());
    return { signal: abort.signal };
  }

  private async send(conn: Connection, out: Direction): Promise<void> {
    const number = out.fates.push('may') - 1;
    const bounds = this.bounds(false);
    if (out === this.there && Object.keys(bounds).length === 0) this.unbounded.push(number);
    const bytes = new Uint8Array(4 + this.random(this.bufferBytes - 3)).fill(number);
    new DataView(bytes.buffer).setUint32(0, number);
    try {
      await this.watched('send', conn.send(bytes, bounds));
      out.fates[number] = 'must';
    } catch (error) {
      if (String(error).includes('it has not been posted')) out.fates[number] = 'must not';
    }
  }

  private async receive(conn: Connection, into: Direction): Promise<boolean> {
    try {
      const taken = conn.receive(this.bounds(true)).then((message) => this.take(message, into));
      await this.watched('receive', taken);
      return true;
    } catch (error) {
      return FlowError.isFlowError(error) && !error.code.startsWith('DAT_CONN');
    }
  }

  private take(message: Message, into: Direction): void {
    const { bytes } = message;
    const number = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
    if (bytes.subarray(4).some((byte) => byte !== number % 256)) {
      this.faults.push(`message ${number} has other bytes than were sent`);
    }
    into.arrived.push(number);
    if (this.random(3) > 0) message.release();
    else this.held.push(message);
  }

  /** A wait without bounds, which ends with the connection at the latest. */
  private async waitFor(conn: Connection, into: Direction): Promise<void> {
    const taken = conn.receive().then((message) => this.take(message, into));
    const late = this.sleep(PATIENCE_US).then(() => this.faults.push('a wait has not ended'));
    await Promise.race([this.watched('receive', taken).catch(() => undefined), late]);
  }

  private checkSent(): void {
    for (const number of this.unbounded) {
      if (this.there.fates[number] === 'must') continue;
      this.faults.push(`message ${number} was asked for before the close, and is not sent`);
    }
  }

  private async endOf(conn: Connection, into: Direction, ending: Ending, ia: Ia): Promise<void> {
    into.isDropping = ending !== 'is cut off';
    // A peer that holds every buffer would keep the close from what it is to send.
    for (const message of this.held.splice(0)) message[Symbol.dispose]();
    if (ending === 'closes') await this.watched('close', conn.close({ timeoutMs: 20_000 }));
    if (ending === 'closes at once') await this.watched('close', conn.close({ timeoutMs: 0 }));
    if (ending === 'adapter closes') await this.watched('ia.close', ia.close());
    if (ending === 'is cut off') await this.takeRest(conn, into);
  }

  /** Until the connection has ended, and nothing is left. */
  private async takeRest(conn: Connection, into: Direction): Promise<void> {
    while (await this.receive(conn, into)) {
      for (const message of this.held.splice(0)) message[Symbol.dispose]();
      if (this.faults.length > 0) return;
    }
  }

  /** Notes that it ends, and how. */
  private async watched<T>(what: string, promise: Promise<T>): Promise<T> {
    this.pending++;
    try {
      return await promise;
    } catch (error) {
      const known = FlowError.isFlowError(error) && EXPECTED.includes(error.code);
      if (!known) this.faults.push(`${what}: ${String(error)}`);
      throw error;
    } finally {
      this.pending--;
    }
  }

  private async settled(): Promise<void> {
    const { fabric } = this;
    const deadline = fabric.clock.now() + PATIENCE_US;
    while (this.pending > 0 && fabric.clock.now() < deadline) await this.sleep(1_000_000);
    if (this.pending > 0) this.faults.push(`${this.pending} promises have not ended`);
  }

  private sleep(us: number): Promise<void> {
    const { clock } = this.fabric;
    return new Promise((resolve) => clock.at(clock.now() + us, resolve));
  }

  private checkLeft(name: string, ia: Ia): void {
    const left = leftOf(ia);
    if (left !== NOTHING_LEFT) this.faults.push(`${name} has left: ${left}`);
  }
}
