/** Faults of links over time: spells of bad luck, partitions short and long, swizzle-clogging. */
import { OPCODES } from '../../core/spi/wire/opcode.js';
import type { Fabric, LinkOptions, SeededRandom } from '../../providers/mock/index.js';
import type { SimOptions } from './options.js';
import type { Trace } from './trace.js';

const MEAN_GAP_US = 3000;

const CALM: Partial<LinkOptions> = {
  lossPercent: 0,
  duplicatePercent: 0,
  reorderPercent: 0,
  corruptPercent: 0,
  latencyMinUs: 8,
  latencyMeanUs: 10,
};

const REPLAYED = new Set(
  ['RC_WRITE_ONLY', 'RC_WRITE_FIRST', 'RC_WRITE_LAST', 'RC_FETCH_ADD', 'RC_COMPARE_SWAP'].concat([
    'RC_SEND_ONLY',
    'RC_READ_REQUEST',
    'RC_ACKNOWLEDGE',
    'RC_READ_RESPONSE_ONLY',
  ]),
);

export class FaultSchedule {
  /** Goes up whenever something begins that may cost packets. */
  epoch = 0;
  private lossy = false;
  private cut = 0;
  private stopped = false;

  constructor(
    private readonly fabric: Fabric,
    private readonly addresses: readonly string[],
    private readonly random: SeededRandom,
    private readonly trace: Trace,
    private readonly options: SimOptions,
  ) {}

  /** Whether packets may be lost at present. */
  get active(): boolean {
    return this.lossy || this.cut > 0;
  }

  start(): void {
    const { loss, duplicate, reorder, corrupt, quiet } = this.options;
    if (quiet) return;
    if ([loss, duplicate, reorder, corrupt].some((rate) => rate !== undefined)) {
      this.set(
        {},
        {
          lossPercent: loss ?? 0,
          duplicatePercent: duplicate ?? 0,
          reorderPercent: reorder ?? 0,
          corruptPercent: corrupt ?? 0,
        },
      );
      return;
    }
    this.replay();
    this.later(() => this.next());
  }

  /** Everything works from now on. */
  stop(): void {
    this.stopped = true;
    this.lossy = false;
    this.cut = 0;
    this.fabric.faults.clear();
    this.fabric.setLink({}, CALM);
    this.fabric.heal();
    this.trace.note('faults end');
  }

  private next(): void {
    const { random } = this;
    const kind = random.below(10);
    if (kind < 4) this.spell();
    else if (kind < 6) {
      this.lossy = false;
      this.set({}, CALM);
    } else if (kind < 8) this.partition();
    else this.swizzle();
    this.later(() => this.next());
  }

  /** A time of bad links, all of them or one direction of one. */
  private spell(): void {
    const { random } = this;
    const rate = (most: number): number => (random.percent(50) ? random.unit() * most : 0);
    const where = random.percent(50)
      ? {}
      : { from: random.pick(this.addresses), to: random.pick(this.addresses) };
    const latencyMinUs = random.pick([1, 8, 50]);
    this.set(where, {
      lossPercent: rate(10),
      duplicatePercent: rate(10),
      reorderPercent: rate(20),
      corruptPercent: rate(5),
      latencyMinUs,
      latencyMeanUs: latencyMinUs * (1 + random.unit() * 3),
      reorderDelayUs: random.pick([20, 200, 2000]),
      duplicateDelayUs: random.pick([10, 500, 20_000]),
    });
  }

  private set(where: { from?: string; to?: string }, link: Partial<LinkOptions>): void {
    if (link !== CALM) {
      this.lossy = true;
      this.epoch++;
    }
    this.fabric.setLink(where, link);
    this.trace.note(`links ${where.from ?? '*'} to ${where.to ?? '*'}: ${JSON.stringify(link)}`);
  }

  /** Cuts one node off, in both directions or one, within the retry budget or beyond it. */
  private partition(): void {
    const { random, fabric } = this;
    const side = random.pick(this.addresses);
    const others = this.addresses.filter((address) => address !== side);
    const direction = random.percent(50) ? 'both' : 'out';
    const forUs = random.percent(60) ? random.between(100, 3000) : random.between(60_000, 300_000);
    fabric.partition([side], others, direction);
    this.beginLoss();
    this.trace.note(`partition of ${side} (${direction}) for ${forUs} us`);
    this.after(forUs, () => {
      for (const other of others) {
        fabric.heal({ from: side, to: other });
        fabric.heal({ from: other, to: side });
      }
      this.endLoss();
    });
  }

  /** FoundationDB's: stop links one after the other, start them again in another order. */
  private swizzle(): void {
    const { random, fabric } = this;
    const order = this.addresses.filter(() => random.percent(70));
    const gapUs = random.between(50, 1500);
    this.trace.note(`swizzle-clog of ${order.join(', ')}, ${gapUs} us apart`);
    order.forEach((from, i) => this.after(i * gapUs, () => fabric.clog({ from })));
    const back = [...order].sort(() => random.below(3) - 1);
    this.beginLoss();
    back.forEach((from, i) => {
      this.after((order.length + i) * gapUs, () => fabric.unclog({ from }));
    });
    this.after((order.length * 2 + 1) * gapUs, () => this.endLoss());
  }

  /** Now and then a packet comes again long after it has been dealt with. */
  private replay(): void {
    this.fabric.faults.add({
      match: {
        where: ({ opcode }) =>
          REPLAYED.has(OPCODES[opcode]?.name ?? '') && this.random.percent(0.5),
        count: Infinity,
      },
      action: { type: 'duplicate', afterUs: [300, 4000, 30_000] },
    });
  }

  /** Something has begun that may cost packets. */
  beginLoss(): void {
    this.cut++;
    this.epoch++;
  }

  endLoss(): void {
    this.cut--;
  }

  private later(task: () => void): void {
    this.after(this.random.exponential(MEAN_GAP_US), task);
  }

  private after(us: number, task: () => void): void {
    this.fabric.clock.at(this.fabric.clock.now() + us, () => {
      if (!this.stopped) task();
    });
  }
}
