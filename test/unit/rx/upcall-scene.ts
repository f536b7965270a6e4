/** Dispatchers and handlers for streams of upcalls. */
import type { DatEvent, Evd } from '../../../core/evd/index.js';
import { type FakeHost, label, settle } from '../evd/fake-host.js';
import { setUp } from '../evd/set-up.js';

/** A dispatcher with events of these payloads. */
export function withEvents(...payloads: readonly unknown[]): { host: FakeHost; evd: Evd } {
  const { host, evd } = setUp({ qlen: 64 });
  for (const payload of payloads) evd.postSe(payload);
  return { host, evd };
}

/** All that can move, moves. */
export async function rest(host: FakeHost): Promise<void> {
  for (let i = 0; i < 6; i++) {
    host.run();
    await settle();
  }
}

/** A handler whose upcalls last until they are told to end. */
export class Stalling {
  readonly begun: unknown[] = [];
  readonly ends: ((value: unknown) => void)[] = [];
  readonly handler = (event: DatEvent | undefined): Promise<unknown> => {
    this.begun.push(label(event));
    return new Promise((resolve) => this.ends.push(resolve));
  };

  endAll(): void {
    for (const end of this.ends.splice(0)) end('ended');
  }
}

export const ONE = { policy: 'ONE' } as const;
export const doubled = (event: DatEvent): number => 2 * (label(event) as number);
