/** Set-up shared by the EVD tests. */
import type { Ep } from '../../../core/dat/index.js';
import assert from 'node:assert/strict';
import { DatError } from '../../../core/errors/index.js';
import { Evd, EvdFlags, type EvdOptions, type ConnectionEvent } from '../../../core/evd/index.js';

import { FakeHost, label } from './fake-host.js';

export const ALL = EvdFlags.DEFAULT | EvdFlags.SOFTWARE;

export function setUp(options: Partial<EvdOptions> = {}): { host: FakeHost; evd: Evd } {
  const host = new FakeHost();
  const evd = new Evd(host, { id: 7, qlen: 8, streams: ALL, ...options } as EvdOptions);
  return { host, evd };
}

export function connection(number: ConnectionEvent['number']): ConnectionEvent {
  return { type: 'connection', number, ep: {} as Ep, privateData: new Uint8Array() };
}

export function drain(evd: Evd): unknown[] {
  const labels: unknown[] = [];
  for (let event = evd.dequeue(); event !== undefined; event = evd.dequeue()) {
    labels.push(label(event));
  }
  return labels;
}

export function dat(code: string, subtype?: string) {
  return (error: unknown): boolean => {
    assert.ok(DatError.isDatError(error), String(error));
    assert.equal(error.code, code);
    if (subtype !== undefined) assert.equal(error.subtype, subtype);
    return true;
  };
}

/** As for EVDs of one endpoint; @returns ends it */
export function watchErrors(evd: Evd, source: Evd): () => void {
  evd.feed.addErrorSource(source.feed);
  return () => evd.feed.removeErrorSource(source.feed);
}
