import assert from 'node:assert/strict';
import { Inbox, Lease, Message, Requests, Waits } from '../../../core/flow/index.js';
import { FlowRun } from '../../support/flow-run.js';

const SEEDS = 16;
/** Seeds in which a planted bug must have shown. */
const PLANT_SEEDS = 60;

/** A way of going wrong: what it puts in place of a method. */
interface Plant {
  readonly name: string;
  readonly type: { readonly prototype: object };
  readonly method: string;
  readonly instead: (original: (...args: never[]) => unknown) => (...args: never[]) => unknown;
}

const PLANTS: readonly Plant[] = [
  {
    name: 'a message that comes while none waits is kept twice',
    type: Inbox,
    method: 'put',
    instead: (put) =>
      function (this: Inbox<unknown>, ...args) {
        const before = this.isAwaited;
        put.apply(this, args);
        if (!before) this['items'].push(...args);
      },
  },
  {
    name: 'a wait that has ended still takes the next message',
    type: Waits,
    method: 'leave',
    instead: (leave) =>
      function (this: Waits<unknown>, ...args) {
        const [{ operation }] = args as unknown as [{ operation: string }];
        if (operation !== 'conn.receive' || !isCancelled()) leave.apply(this, args);
      },
  },
  {
    name: 'the waits of a connection that has ended are forgotten',
    type: Waits,
    method: 'end',
    instead: () => () => undefined,
  },
  {
    name: 'a request that is done keeps its memory',
    type: Lease,
    method: 'release',
    instead: () => () => undefined,
  },
  {
    name: 'a message that is released does not give its buffer back',
    type: Message,
    method: 'handOver',
    instead: (handOver) =>
      function (this: Message, ...args) {
        const keep = Object.create(this['home'], {
          giveBack: { value: () => undefined },
        }) as object;
        Object.assign(this, { home: keep });
        handOver.apply(this, args);
      },
  },
  {
    name: 'requests that wait for a slot are forgotten',
    type: Requests,
    method: 'next',
    instead: () => () => undefined,
  },
];

/** Called from a timer or a signal, and not from what serves the wait. */
function isCancelled(): boolean {
  return /Limits/.test(new Error().stack ?? '');
}

async function firstFault(seeds: number): Promise<string | undefined> {
  for (let seed = 1; seed <= seeds; seed++) {
    const faults = await new FlowRun(seed)
      .run()
      .catch((error: unknown) => [`it has thrown ${String(error)}`]);
    if (faults.length > 0) return `seed ${seed}: ${faults.join('; ')}`;
  }
  return undefined;
}

describe('flow: any interleaving of send, receive, cancel, timeout, close, cut and loss', () => {
  it('ends each promise once, loses and doubles nothing, leaks nothing', async () => {
    assert.equal(await firstFault(SEEDS), undefined);
  });

  for (const { name, type, method, instead } of PLANTS) {
    it(`finds: ${name}`, async () => {
      const prototype = type.prototype as Record<string, (...args: never[]) => unknown>;
      const original = prototype[method] as (...args: never[]) => unknown;
      prototype[method] = instead(original);
      try {
        assert.notEqual(await firstFault(PLANT_SEEDS), undefined);
      } finally {
        prototype[method] = original;
      }
    });
  }
});
