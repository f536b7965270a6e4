/** A notification object with event dispatchers of both kinds, for tests. */
import { Cno, Evd, EvdFlags } from '../../../core/evd/index.js';
import { type FakeEndpoint, FakeHost, settle } from './fake-host.js';

export const SOFTWARE = EvdFlags.SOFTWARE;

export interface Scene {
  readonly host: FakeHost;
  readonly cno: Cno;
  readonly a: Evd;
  readonly b: Evd;
  readonly dto: Evd;
  readonly ep: FakeEndpoint;
}

/** A CNO with two EVDs for software events, and one for completions. */
export function scene({ reportsSolicited = false } = {}): Scene {
  const host = new FakeHost();
  host.device.attributes.reportsSolicited = reportsSolicited;
  const cno = new Cno(host, { id: 1 });
  const make = (id: number, streams: number): Evd => new Evd(host, { id, qlen: 8, streams, cno });
  const [a, b] = [make(2, SOFTWARE), make(3, SOFTWARE)];
  const dto = make(4, EvdFlags.DTO | SOFTWARE);
  const ep = host.endpoint();
  return { host, cno, a, b, dto, ep };
}

/** What has become of a promise by now. */
export function watch<T>(promise: Promise<T>): { now: () => Promise<unknown> } {
  let outcome: unknown = 'pending';
  promise.then(
    (value) => (outcome = { value }),
    (error: unknown) => (outcome = codeOf(error)),
  );
  return {
    now: async () => {
      await settle();
      return outcome;
    },
  };
}

export const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code;
