/** What is told of a work completion: its status, its operation, its event's number. */
import assert from 'node:assert/strict';
import {
  DatDto,
  DatDtoStatus,
  DatEventNumber,
  dtoEventNumber,
  dtoOf,
  dtoStatusOf,
} from '../../../core/evd/index.js';
import { WcFlags, WcOpcode, WcStatus } from '../../../core/spi/index.js';

const { WITH_IMM, WITH_INV, SOLICITED } = WcFlags;

describe('DTO completions', () => {
  const operations: readonly [keyof typeof WcOpcode, number, keyof typeof DatDto][] = [
    ['SEND', 0, 'SEND'],
    ['SEND', WITH_IMM, 'SEND'],
    ['SEND', WITH_INV, 'SEND'],
    ['RDMA_WRITE', 0, 'RDMA_WRITE'],
    ['RDMA_WRITE', SOLICITED, 'RDMA_WRITE'],
    ['RDMA_WRITE', WITH_IMM, 'RDMA_WRITE_IMMED'],
    ['RDMA_READ', 0, 'RDMA_READ'],
    ['COMP_SWAP', 0, 'CMP_SWAP'],
    ['FETCH_ADD', 0, 'FETCH_ADD'],
    ['BIND_MW', 0, 'BIND_MW'],
    ['LOCAL_INV', 0, 'LMR_INVALIDATE'],
    ['RECV', 0, 'RECEIVE'],
    ['RECV', SOLICITED, 'RECEIVE'],
    ['RECV', WITH_INV, 'RECEIVE_WITH_INVALIDATE'],
    ['RECV', WITH_INV | SOLICITED, 'RECEIVE_WITH_INVALIDATE'],
    ['RECV', WITH_IMM, 'RECV_MSG_IMMED'],
    ['RECV', WITH_IMM | SOLICITED, 'RECV_MSG_IMMED'],
    ['RECV_RDMA_WITH_IMM', WITH_IMM, 'RECV_IMMED'],
  ];
  it('have the operation of their opcode and flags', () => {
    for (const [opcode, flags, dto] of operations) {
      assert.equal(dtoOf(WcOpcode[opcode], flags), DatDto[dto], `${opcode} ${flags}`);
    }
  });

  it('have a status for each of the provider’s, SUCCESS for success alone', () => {
    for (const [name, status] of Object.entries(WcStatus)) {
      const isSuccess = dtoStatusOf(status) === DatDtoStatus.SUCCESS;
      assert.equal(isSuccess, name === 'SUCCESS', name);
    }
    for (const unknown of [200, 255, 256, 1000]) {
      assert.equal(dtoStatusOf(unknown), DatDtoStatus.FLUSHED);
    }
  });

  it('are IB_DTO events from the first operation of the IB extensions on', () => {
    const { DTO_COMPLETION, IB_DTO } = DatEventNumber;
    assert.equal(dtoEventNumber(DatDto.SEND), DTO_COMPLETION);
    assert.equal(dtoEventNumber(DatDto.LMR_INVALIDATE), DTO_COMPLETION);
    assert.equal(dtoEventNumber(DatDto.RDMA_WRITE_IMMED), IB_DTO);
    assert.equal(dtoEventNumber(DatDto.RECV_UD_IMMED), IB_DTO);
  });
});
