/** The open pair of a behaviour: two devices, each with a check of the SPI contract around it. */
import assert from 'node:assert/strict';
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import { type ConfiguredProvider, type Device, nameOf, WcStatus } from 'dapl/spi';
import { type Breach, over, strictDevice } from 'dapl/spi/decorators';
import { type BehaviourGroup, type Claim, group } from '../suite/behaviour.js';
import { type Completion, End, type EndOptions, until } from './end.js';
import type { DeviceNeed, DevicePair } from './fixture.js';
import { openDevice } from './open-device.js';
import { PATIENCE_MS } from '../suite/pace.js';

/** Turns of the event loop after which a device is taken to be idle. */
const QUIET_TURNS = 20;

/** Turns after which a wait starts to sleep, so that other processes can run. */
const TURNS_BEFORE_REST = 50;

export class World {
  private turns = 0;

  constructor(
    readonly active: Device,
    readonly passive: Device,
    private readonly pair: DevicePair,
    private readonly breaches: readonly Breach[],
    private readonly closers: readonly (() => Promise<void>)[],
  ) {}

  get patienceMs(): number {
    return this.pair.patienceMs ?? PATIENCE_MS;
  }

  async settle(): Promise<void> {
    if (this.pair.settle) await this.pair.settle();
    else await (++this.turns % TURNS_BEFORE_REST === 0 ? delay(1) : turn());
  }

  /** Waits until both devices are idle. */
  async quiet(): Promise<void> {
    for (let i = 0; i < QUIET_TURNS; i++) await this.settle();
  }

  /** Two ends in INIT. */
  ends(options: EndOptions = {}): { readonly a: End; readonly b: End } {
    const [a, b] = [new End(this.active, options), new End(this.passive, options)];
    a.toInit();
    b.toInit();
    return { a, b };
  }

  /** Two connected ends, both in RTS. */
  connected(options: EndOptions = {}): { readonly a: End; readonly b: End } {
    const { a, b } = this.ends(options);
    for (const [end, peer] of [
      [a, b],
      [b, a],
    ] as const) {
      end.toRtr(peer);
      end.toRts();
    }
    return { a, b };
  }

  /** Waits for exactly this number of completions. */
  async completions(end: End, count: number): Promise<Completion[]> {
    const taken: Completion[] = [];
    const look = (): boolean => taken.push(...end.take()) >= count;
    await until(this, look, `${count} completions`);
    assert.equal(taken.length, count, 'more completions than requests');
    return taken;
  }

  /** The same, as names of their statuses. */
  async statuses(end: End, count: number): Promise<string[]> {
    return (await this.completions(end, count)).map(({ status }) => nameOf(WcStatus, status));
  }

  until(isSo: () => boolean, what: string): Promise<void> {
    return until(this, isSo, what);
  }

  async close(): Promise<void> {
    for (const close of this.closers) await close();
    await this.pair.close?.();
    const [breach] = this.breaches;
    assert.equal(breach?.message, undefined, breach && `${breach.rule}: ${breach.message}`);
  }
}

export async function openWorld(pair: DevicePair): Promise<World> {
  const closers: (() => Promise<void>)[] = [];
  const breaches: Breach[] = [];
  const guarded = async (given: Device | ConfiguredProvider): Promise<Device> => {
    const holder = 'instance' in given ? await openDevice(given) : undefined;
    if (holder !== undefined) closers.push(() => holder.close());
    const device = holder?.device ?? (given as Device);
    const members = strictDevice(device, (breach) => void breaches.push(breach));
    return over(device, members);
  };
  const [active, passive] = [await guarded(pair.active), await guarded(pair.passive)];
  return new World(active, passive, pair, breaches, closers);
}

export function deviceGroup(
  name: string,
  state: (claim: Claim<World, DeviceNeed>) => void,
): BehaviourGroup<World, DeviceNeed> {
  return group<World, DeviceNeed>(name, state);
}
