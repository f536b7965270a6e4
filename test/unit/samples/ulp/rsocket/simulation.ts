/**
 * One random life of a connection on mock, by seed: writes, reads, ends, resets, closed adapters,
 * loss, cut links, in any order and of any size. What it finds wrong is returned, in words.
 */
import {
  rsocket,
  type RsocketOptions,
  type RsocketStream,
} from '../../../../../samples/ulp/rsocket/index.js';
import type { StreamError } from '../../../../../samples/ulp/socket/index.js';
import {
  CLIENT,
  leftOf,
  listening,
  NOTHING_LEFT,
  PORT,
  SERVER,
  type World,
  worldOf,
} from './stream-scene.js';

/** How long everything may take to end: of virtual time. */
const PATIENCE_US = 120_000_000;
const LOSSES = [0, 0, 2, 10] as const;
const CODES: readonly string[] = [
  'EPIPE',
  'ECONNRESET',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EHOSTUNREACH',
];

type Fate = 'closes' | 'is cut off' | 'aborts' | 'adapter closes' | 'link goes for a while';
const FATES: readonly Fate[] = [
  'closes',
  'closes',
  'is cut off',
  'aborts',
  'adapter closes',
  'link goes for a while',
];

/** A small generator (mulberry32): the same numbers for the same seed. */
export function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** Byte n of a direction. */
const byteAt = (n: number): number => (n * 31 + (n >> 8)) & 0xff;

/** One side: what it wrote, read and was told. */
class Side {
  stream!: RsocketStream;
  peer!: Side;
  written = 0;
  read = 0;
  /** Callbacks that have not come. */
  pending = 0;
  hasShutDown = false;
  hasSeenEnd = false;
  hasClosed = false;
  closed = 0;
  error: StreamError | undefined = undefined;

  constructor(
    readonly name: string,
    private readonly random: (below: number) => number,
    private readonly faults: string[],
  ) {}

  begin(stream: RsocketStream): void {
    this.stream = stream;
    stream.start({
      onReadable: () => {
        if (this.random(4) > 0) this.readSome();
      },
      onClose: (error) => {
        this.closed++;
        this.error = error;
        if (this.closed > 1) this.faults.push(`${this.name}: onClose came twice`);
        if (error !== undefined && !CODES.includes(error.code)) {
          this.faults.push(`${this.name}: ${String(error)}`);
        }
      },
    });
  }

  write(): void {
    if (this.pending > 0 || this.hasShutDown || this.hasClosed) return;
    const lengths = [1, 1 + this.random(100), 1 + this.random(10_000)];
    const chunks = Array.from({ length: 1 + this.random(3) }, () => {
      const length = lengths[this.random(lengths.length)] as number;
      return Uint8Array.from({ length }, () => byteAt(this.written++));
    });
    this.watch('write', (done) => this.stream.write(chunks, done));
  }

  readSome(): void {
    const view = this.stream.peek();
    if (view !== undefined) {
      const bytes = 1 + this.random(view.length);
      for (let i = 0; i < bytes; i++) {
        if (view[i] !== byteAt(this.read + i)) {
          this.faults.push(`${this.name}: byte ${this.read + i} is not what was sent`);
          break;
        }
      }
      this.read += bytes;
      this.stream.consume(bytes);
    }
    if (this.read > this.peer.written) this.faults.push(`${this.name}: more than was sent`);
    if (this.stream.hasEnded) this.seeEnd();
  }

  shutdown(): void {
    if (this.pending > 0 || this.hasShutDown || this.hasClosed) return;
    this.hasShutDown = true;
    this.watch('shutdown', (done) => this.stream.shutdown(done));
  }

  close(how: 'close' | 'abort'): void {
    this.hasClosed = true;
    this.stream[how]();
  }

  /** The peer has said that it sends no more: then all that was written has come. */
  private seeEnd(): void {
    if (this.hasSeenEnd) return;
    this.hasSeenEnd = true;
    if (!this.peer.hasShutDown && !this.peer.hasClosed) {
      this.faults.push(`${this.name}: an end that the peer did not make`);
    }
    if (this.peer.hasShutDown && this.read !== this.peer.written) {
      this.faults.push(`${this.name}: ${this.read} bytes of ${this.peer.written} before the end`);
    }
  }

  private watch(what: string, begin: (done: (error?: StreamError) => void) => void): void {
    let count = 0;
    this.pending++;
    begin((error) => {
      this.pending--;
      if (++count > 1) this.faults.push(`${this.name}: ${what} ended twice`);
      if (error !== undefined && !CODES.includes(error.code)) {
        this.faults.push(`${this.name}: ${what}: ${String(error)}`);
      }
    });
  }
}

export interface SimulationReport {
  readonly faults: readonly string[];
  /** Bytes that have come, both ways, and how it ended: for a look at what a seed does. */
  readonly bytes: number;
  readonly fate: Fate;
}

export async function simulate(seed: number): Promise<SimulationReport> {
  const random = randomOf(seed);
  const faults: string[] = [];
  const lossPercent = LOSSES[random(LOSSES.length)] as number;
  const world = await worldOf({ seed, link: { lossPercent } });
  const options = (): RsocketOptions => ({
    after: world.after,
    receiveBytes: 2 * (1 + random(4000)),
    sendBytes: 2048 + random(4000),
    credits: 16 + random(20),
    sends: 16 + random(20),
    messageBytes: 1 + random(5000),
  });
  const near = new Side('near', random, faults);
  const far = new Side('far', random, faults);
  near.peer = far;
  far.peer = near;
  const fate = FATES[random(FATES.length)] as Fate;
  try {
    const accepted = new Promise<void>((resolve) => {
      void listening(
        rsocket(world.server, options()),
        (stream) => {
          far.begin(stream);
          resolve();
        },
        { onError: () => undefined },
      );
    });
    const client = rsocket(world.client, options());
    near.begin(await client.connect({ address: SERVER, port: PORT }));
    await accepted;
    await live(world, random, [near, far], fate);
    await rest(world, [near, far], fate, faults);
    if (fate !== 'adapter closes') checkLeft('client', leftOf(world.client), faults);
  } finally {
    await world.close();
  }
  return { faults, bytes: near.read + far.read, fate };
}

/** Steps of both sides, in between the fate of the connection. */
async function live(
  world: World,
  random: (below: number) => number,
  sides: readonly [Side, Side],
  fate: Fate,
): Promise<void> {
  const { fabric } = world;
  const steps = 20 + random(60);
  const at = random(steps);
  for (let step = 0; step < steps; step++) {
    const side = sides[random(2)] as Side;
    switch (random(8)) {
      case 0:
      case 1:
      case 2:
        side.write();
        break;
      case 3:
      case 4:
        side.readSome();
        break;
      case 5:
        if (random(10) === 0) side.shutdown();
        break;
      default:
        await world.sleep(random(3000));
    }
    if (step !== at) continue;
    if (fate === 'is cut off') fabric.partition([CLIENT], [SERVER]);
    if (fate === 'aborts') sides[random(2)]?.close('abort');
    if (fate === 'adapter closes') await world.client.close('abrupt');
    if (fate === 'link goes for a while') {
      fabric.partition([CLIENT], [SERVER]);
      await world.sleep(random(300_000));
      fabric.heal();
    }
  }
}

/** Both sides end, and read what is left, until everything has come to its end. */
async function rest(
  world: World,
  sides: readonly [Side, Side],
  fate: Fate,
  faults: string[],
): Promise<void> {
  const deadline = world.fabric.clock.now() + PATIENCE_US;
  while (sides.some(({ closed, pending }) => closed === 0 || pending > 0)) {
    if (world.fabric.clock.now() > deadline) {
      for (const { name, closed, pending, read, peer } of sides) {
        faults.push(`${name} does not end: ${closed}, ${pending}; ${read} of ${peer.written}`);
      }
      return;
    }
    for (const side of sides) {
      side.readSome();
      if (side.closed > 0) continue;
      side.shutdown();
      if (side.hasSeenEnd && side.hasShutDown && side.pending === 0) side.close('close');
    }
    await world.sleep(1000);
  }
  for (const side of sides) {
    while (side.stream.peek() !== undefined) side.readSome();
    const isWhole = fate === 'closes' || fate === 'link goes for a while';
    if (isWhole && side.error !== undefined) {
      faults.push(`${side.name}: ended by itself: ${String(side.error)}`);
    }
    if (isWhole && side.read !== side.peer.written) {
      faults.push(`${side.name}: ${side.read} bytes of ${side.peer.written} have come`);
    }
  }
}

function checkLeft(name: string, left: string, faults: string[]): void {
  if (left !== NOTHING_LEFT) faults.push(`${name} has left: ${left}`);
}
