/** What the columns of an `EventBatch` say of each kind of event. */
import assert from 'node:assert/strict';
import type { Ep } from '../../../core/dat/index.js';
import {
  type CompletionOwner,
  DatDto,
  DatDtoStatus,
  type DatEvent,
  DatEventNumber,
  EventBatch,
} from '../../../core/evd/index.js';
import { WcFlags, WcOpcode, WcStatus } from '../../../core/spi/index.js';
import { label } from './fake-host.js';
import { connection, dat, setUp } from './set-up.js';

const { DTO_COMPLETION, IB_DTO, RMR_BIND_COMPLETION } = DatEventNumber;
/** Something that no test expects to see again. */
const REST = 0x7777;

/** A slot of a batch, by column. */
function slotOf(batch: EventBatch, slot: number) {
  return {
    number: batch.numbers[slot],
    cookie: batch.cookies[slot],
    status: batch.statuses[slot],
    operation: batch.operations[slot],
    length: batch.lengths[slot],
    immediate: batch.immediates[slot],
    ep: batch.eps[slot],
    event: batch.events[slot],
  };
}

/** A batch whose slots all hold something already. */
function usedBatch(capacity: number): EventBatch {
  const batch = new EventBatch(capacity);
  for (const column of ['numbers', 'cookies', 'statuses', 'operations', 'lengths'] as const) {
    batch[column].fill(REST);
  }
  batch.immediates.fill(REST);
  batch.eps.fill({} as Ep);
  batch.events.fill(connection(DatEventNumber.BROKEN));
  return batch;
}

/** The only slot of a batch that has been filled with a completion whose owner makes this event. */
function madeBy(toEvent: () => DatEvent) {
  const { host, evd } = setUp();
  const owner: CompletionOwner = { onCompletion: () => true, toEvent };
  host.cq.add({ context: host.owners.allocate(owner), cookie: 1 });
  const batch = usedBatch(1);
  assert.equal(evd.dequeueInto(batch), 1);
  return slotOf(batch, 0);
}

describe('evd: the columns of a batch', () => {
  const completions = [
    {
      what: 'a send, with rubbish where an immediate would be',
      opcode: WcOpcode.SEND,
      flags: WcFlags.SOLICITED,
      expected: { number: DTO_COMPLETION, operation: DatDto.SEND, immediate: 0 },
    },
    {
      what: 'a receive without immediate data',
      opcode: WcOpcode.RECV,
      flags: 0,
      expected: { number: DTO_COMPLETION, operation: DatDto.RECEIVE, immediate: 0 },
    },
    {
      what: 'a receive with immediate data',
      opcode: WcOpcode.RECV,
      flags: WcFlags.WITH_IMM,
      expected: { number: IB_DTO, operation: DatDto.RECV_MSG_IMMED, immediate: 77 },
    },
    {
      what: 'a receive with invalidate',
      opcode: WcOpcode.RECV,
      flags: WcFlags.WITH_INV,
      expected: {
        number: DTO_COMPLETION,
        operation: DatDto.RECEIVE_WITH_INVALIDATE,
        immediate: 77,
      },
    },
    {
      what: 'a receive of a write with immediate data',
      opcode: WcOpcode.RECV_RDMA_WITH_IMM,
      flags: WcFlags.WITH_IMM,
      expected: { number: IB_DTO, operation: DatDto.RECV_IMMED, immediate: 77 },
    },
    {
      what: 'a write with immediate data, which is the peer’s',
      opcode: WcOpcode.RDMA_WRITE,
      flags: WcFlags.WITH_IMM,
      expected: { number: IB_DTO, operation: DatDto.RDMA_WRITE_IMMED, immediate: 0 },
    },
  ] as const;
  for (const { what, opcode, flags, expected } of completions) {
    for (const status of [WcStatus.SUCCESS, WcStatus.WR_FLUSH_ERR]) {
      it(`of ${what}, status ${status}`, () => {
        const { host, evd } = setUp();
        const ep = host.endpoint();
        const cookie = Number.MAX_SAFE_INTEGER;
        const { context } = ep;
        host.cq.add({ context, cookie, opcode, flags, status, lengthBytes: 9, immediate: 77 });
        const batch = usedBatch(1);
        assert.equal(evd.dequeueInto(batch), 1);
        const isSuccess = status === WcStatus.SUCCESS;
        assert.deepEqual(slotOf(batch, 0), {
          ...expected,
          cookie,
          status: isSuccess ? DatDtoStatus.SUCCESS : DatDtoStatus.FLUSHED,
          length: isSuccess ? 9 : 0,
          ep,
          event: undefined,
        });
      });
    }
  }

  it('of a bind: endpoint, cookie and status beside the event', () => {
    const ep = {} as Ep;
    const event: DatEvent = {
      type: 'rmr-bind',
      number: RMR_BIND_COMPLETION,
      rmr: {} as never,
      ep,
      cookie: 5,
      status: DatDtoStatus.RMR_OPERATION_FAILED,
    };
    const slot = madeBy(() => event);
    assert.equal(slot.event, event);
    assert.equal(slot.ep, ep);
    const { number, cookie, status } = slot;
    assert.deepEqual(
      { number, cookie, status },
      { number: RMR_BIND_COMPLETION, cookie: 5, status: DatDtoStatus.RMR_OPERATION_FAILED },
    );
  });

  for (const immediate of [undefined, 12]) {
    it(`of a datagram ${immediate ? 'with' : 'without'} immediate: no endpoint`, () => {
      const event: DatEvent = {
        type: 'datagram',
        number: IB_DTO,
        ep: {} as never,
        cookie: 6,
        status: DatDtoStatus.SUCCESS,
        transferredLength: 50,
        operation: DatDto.RECV_UD,
        ...(immediate !== undefined && { immediate }),
      };
      assert.deepEqual(
        madeBy(() => event),
        {
          number: IB_DTO,
          cookie: 6,
          status: DatDtoStatus.SUCCESS,
          operation: DatDto.RECV_UD,
          length: 50,
          immediate: immediate ?? 0,
          ep: undefined,
          event,
        },
      );
    });
  }

  for (const more of [{ immediate: 3 }, { invalidatedRmrContext: 4 }, {}]) {
    it(`of a transfer whose owner makes objects: ${JSON.stringify(more)}`, () => {
      const ep = {} as Ep;
      const event: DatEvent = {
        type: 'dto',
        number: DTO_COMPLETION,
        ep,
        cookie: 7,
        status: DatDtoStatus.SUCCESS,
        transferredLength: 51,
        operation: DatDto.RECEIVE,
        ...more,
      };
      assert.deepEqual(
        madeBy(() => event),
        {
          number: DTO_COMPLETION,
          cookie: 7,
          status: DatDtoStatus.SUCCESS,
          operation: DatDto.RECEIVE,
          length: 51,
          immediate: more.immediate ?? more.invalidatedRmrContext ?? 0,
          ep,
          event,
        },
      );
    });
  }

  it('of other events: the endpoint of those that have one', () => {
    const { evd } = setUp();
    const event = connection(DatEventNumber.DISCONNECTED);
    evd.feed.post(event);
    evd.postSe('soft');
    const batch = usedBatch(2);
    assert.equal(evd.dequeueInto(batch), 2);
    assert.deepEqual([...batch.numbers], [DatEventNumber.DISCONNECTED, DatEventNumber.SOFTWARE]);
    assert.deepEqual(batch.eps, [event.ep, undefined]);
    assert.equal(batch.events[0], event);
    assert.equal(label(batch.events[1]), 'soft');
    assert.ok(batch.cookies.every(Number.isSafeInteger));
  });

  it('of a transfer that a loop has taken and given back: as if it had not', async () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    host.cq.add({ context: ep.context, cookie: 8, lengthBytes: 10 });
    evd.postSe('soft');
    for await (const batch of evd) if (batch !== undefined) break;
    const batch = usedBatch(2);
    assert.equal(evd.dequeueInto(batch), 2);
    assert.deepEqual(slotOf(batch, 0), {
      number: DTO_COMPLETION,
      cookie: 8,
      status: DatDtoStatus.SUCCESS,
      operation: DatDto.SEND,
      length: 10,
      immediate: 0,
      ep,
      event: undefined,
    });
    assert.equal(label(batch.events[1]), 'soft');
  });

  it('hold no object any more once it has been cleared', () => {
    const { host, evd } = setUp();
    host.cq.add({ context: host.endpoint().context, cookie: 1 });
    evd.postSe('soft');
    const batch = new EventBatch(2);
    assert.deepEqual(
      [batch.eps, batch.events],
      [Array(2).fill(undefined), Array(2).fill(undefined)],
    );
    evd.dequeueInto(batch);
    assert.equal(batch.count, 2);
    batch.clear();
    assert.equal(batch.count, 0);
    assert.deepEqual([...batch.eps, ...batch.events], Array(4).fill(undefined));
  });

  it('are as many as was asked for: 1 to 2^20', () => {
    for (const capacity of [0, -1, 1.5, 2 ** 20 + 1, '4' as unknown as number]) {
      assert.throws(
        () => new EventBatch(capacity),
        dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG1'),
        String(capacity),
      );
    }
    const batch = new EventBatch(1);
    for (const column of [batch.numbers, batch.cookies, batch.statuses, batch.operations]) {
      assert.equal(column.length, 1);
    }
    assert.deepEqual([batch.lengths.length, batch.immediates.length], [1, 1]);
  });
});
