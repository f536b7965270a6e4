// Writes and sends without end over one connection, and what became of each.
import assert from 'node:assert/strict';
import { DatDtoStatus, DatEventNumber, type Ep, nameOf } from 'dapl';
import type { Side } from './side.js';

const DEPTH = 16;
const WRITE_BYTES = 16_384;

export interface LoadEnd {
  /** BROKEN, DISCONNECTED, or what else ended it; undefined: it was told to stop. */
  readonly end: string | undefined;
  readonly succeeded: number;
  /** Completions in error, by status. */
  readonly failed: Readonly<Record<string, number>>;
}

export interface Load {
  /** No more than these requests are posted; then it ends. */
  readonly requests?: number;
  /** Told with each success. */
  readonly onSuccess?: (count: number) => void;
}

/**
 * Keeps RDMA writes under way until the connection ends.
 * @throws when a request ends twice, out of order, or not at all
 */
export async function load(
  side: Side,
  ep: Ep,
  peer: Pick<Side, 'remote'>,
  how: Load = {},
): Promise<LoadEnd> {
  const { requests = Infinity, onSuccess } = how;
  const target = peer.remote();
  let posted = 0;
  let ended = 0;
  let succeeded = 0;
  const failed: Record<string, number> = {};
  for (;;) {
    while (posted - ended < DEPTH && posted < requests && ep.state === 'CONNECTED') {
      ep.postRdmaWrite(side.lmr.segment(0, WRITE_BYTES), posted++, target);
    }
    if (posted === ended && posted >= requests) return { end: undefined, succeeded, failed };
    const event = await side.next();
    if (event.type === 'dto') {
      assert.equal(event.cookie, ended++, 'each request ends once, in order');
      const status = nameOf(DatDtoStatus, event.status);
      // An argument of a call that is left out is left out too.
      if (status === 'SUCCESS') succeeded++;
      if (status === 'SUCCESS') onSuccess?.(succeeded);
      else failed[status] = (failed[status] ?? 0) + 1;
    } else {
      assert.equal(ended, posted, 'the end comes behind the completions');
      return { end: nameOf(DatEventNumber, event.number), succeeded, failed };
    }
  }
}
