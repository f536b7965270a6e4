/**
 * The memory windows of an endpoint and what their keys are good for: bound by its own queue pair,
 * given to the peer or kept, taken back by the peer's SEND with invalidate or by LOCAL_INV.
 */
import { type MemoryWindow, nextRkey } from '../../core/spi/index.js';
import type { SimNode } from './sim-node.js';
import { Violation } from './trace.js';

const COUNT = 3;
/** Dead keys that are remembered: far fewer than it takes until a key comes again. */
const STALE_KEYS = 8;

/** FREE: bind it. BUSY: a request that changes it is under way. OPEN: the peer's. KEPT: ours. */
type State = 'free' | 'busy' | 'open' | 'kept';

export interface SimWindow {
  readonly window: MemoryWindow;
  state: State;
  key: number;
}

export class Windows {
  private readonly all: SimWindow[];
  /** Keys that have been invalidated for sure. */
  readonly stale: number[] = [];
  invalidations = 0;

  constructor(
    private readonly name: string,
    node: SimNode,
  ) {
    const { device } = node.node;
    this.all = Array.from({ length: COUNT }, () => {
      const window = device.createMemoryWindow(node.pd, 2);
      return { window, state: 'free', key: window.rkey };
    });
  }

  in(state: State): SimWindow | undefined {
    return this.all.find((each) => each.state === state);
  }

  /** Begins a bind; the key it will have. */
  begin(each: SimWindow): number {
    each.state = 'busy';
    each.key = nextRkey(each.key);
    const known = this.stale.indexOf(each.key);
    if (known >= 0) this.stale.splice(known, 1);
    return each.key;
  }

  /** The bind has succeeded: the key is given to the peer, or kept. */
  bound(key: number, given: boolean): void {
    const each = this.of(key);
    if (each.window.rkey !== key) {
      throw new Violation(`${this.name}: bound with key ${key}, and has ${each.window.rkey}`);
    }
    each.state = given ? 'open' : 'kept';
  }

  /** An invalidation of this key has been done. */
  invalidated(key: number): void {
    this.of(key).state = 'free';
    this.stale.push(key);
    this.invalidations += 1;
    if (this.stale.length > STALE_KEYS) this.stale.shift();
  }

  destroy(): void {
    for (const { window } of this.all) window.destroy();
  }

  private of(key: number): SimWindow {
    const found = this.all.find((each) => each.key === key && each.state === 'busy');
    if (!found) throw new Violation(`${this.name}: key ${key} is of no window that is changing`);
    return found;
  }
}
