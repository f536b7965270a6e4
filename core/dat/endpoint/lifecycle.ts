/** Reset, modify and free. */
import { spiCall } from '../../errors/index.js';
import { keepProcessFor } from '../common/private-evd.js';
import { Symbolic } from '../common/trace.js';
import { modifiedInit, type ModifyOptions } from './modify.js';
import { setWatermark } from './queries.js';
import type { EpRecord } from './endpoint-state.js';

export function reset(record: EpRecord): void {
  const operation = record.begin('ep.reset');
  if (record.checkLegal(operation, 'reset') === 'no-op') return;
  const next = record.createQueues(record.init);
  record.takeInCompletions();
  record.connection.reset();
  spiCall({ operation }, () => record.events.retire(record.queues));
  record.queues = next;
}

export function modify(record: EpRecord, options: ModifyOptions): void {
  const operation = record.begin('ep.modify', fieldsOf(options));
  const { init } = record;
  const { next, rebuild } = modifiedInit(operation, options, record);
  const swap = record.events.prepare(next);
  if (rebuild) {
    try {
      const queues = record.createQueues(next);
      queues.takeReceives(record.queues);
      record.destroyQueues(operation, record.queues);
      record.queues = queues;
    } catch (error) {
      swap.abort();
      throw error;
    }
  }
  init.pz.users--;
  next.pz.users++;
  record.init = next;
  swap.commit();
  const soft = next.attributes.srqSoftHighWatermark;
  if (soft !== init.attributes.srqSoftHighWatermark)
    setWatermark(record, soft, record.watermarks?.hard ?? Infinity);
}

/** Names of the changed fields, for the trace: written before anything is checked. */
function fieldsOf(options: unknown): { readonly fields: Symbolic } {
  const given = typeof options === 'object' && options !== null ? Object.keys(options) : [];
  return { fields: new Symbolic(given.join('|')) };
}

export function destroy(record: EpRecord, by: string): void {
  const { init, core, ep } = record;
  record.destroyQueues(by, record.queues);
  record.freedBy = by;
  record.events.close();
  record.counts.free();
  init.pz.users--;
  if (init.srq !== undefined) init.srq.users--;
  core.forget(ep);
}

/** `ep.ref` and `ep.unref`. */
export function keepProcess({ connection, init }: EpRecord, wanted: boolean): void {
  connection.keepProcess(wanted);
  for (const evd of init.privateEvds) keepProcessFor(evd, wanted);
}
