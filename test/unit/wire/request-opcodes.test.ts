// The table of send requests: each has a row, and what the rows say (IBTA tables 36 and 38).

import assert from 'node:assert/strict';
import { WcOpcode, WrOpcode } from '../../../core/spi/index.js';
import { OPERATION } from '../../../core/spi/wire/opcode.js';
import {
  ANSWERED_BY,
  COMPLETED_AS,
  isAtomic,
  isLocal,
  isRead,
  needsResponse,
  packetOpcode,
  REQUEST_BIT,
  REQUEST_BITS,
  takesReceive,
} from '../../../core/spi/wire/request-opcodes.js';

const names = Object.keys(WrOpcode) as (keyof typeof WrOpcode)[];
const those = (holds: (opcode: number) => boolean): string[] =>
  names.filter((name) => holds(WrOpcode[name])).sort();
const has = (bit: number) => (opcode: number) => (REQUEST_BITS[opcode]! & bit) !== 0;

const UNRELIABLE = ['RDMA_WRITE', 'RDMA_WRITE_WITH_IMM', 'SEND', 'SEND_WITH_IMM'];
const ATOMIC = ['ATOMIC_CMP_AND_SWP', 'ATOMIC_FETCH_AND_ADD'];
const LOCAL = ['BIND_MW', 'LOCAL_INV'];

describe('request opcodes', () => {
  it('have a row each, and no other number has one', () => {
    const known = Array.from(REQUEST_BITS.keys()).filter((opcode) => REQUEST_BITS[opcode] !== 0);
    assert.deepEqual(known, Object.values(WrOpcode).sort());
    assert.deepEqual(those(has(REQUEST_BIT.rc)), [...names].sort());
  });

  it('are those of each transport', () => {
    assert.deepEqual(those(has(REQUEST_BIT.uc)), [...UNRELIABLE, ...LOCAL].sort());
    assert.deepEqual(those(has(REQUEST_BIT.ud)), ['SEND', 'SEND_WITH_IMM']);
  });

  it('are of a kind', () => {
    assert.deepEqual(those(isLocal), LOCAL);
    assert.deepEqual(those(isRead), ['RDMA_READ']);
    assert.deepEqual(those(isAtomic), ATOMIC);
    assert.deepEqual(those(needsResponse), [...ATOMIC, 'RDMA_READ']);
    assert.deepEqual(those(takesReceive), [
      'RDMA_WRITE_WITH_IMM',
      'SEND',
      'SEND_WITH_IMM',
      'SEND_WITH_INV',
    ]);
  });

  it('have an answer that completes them, and an opcode in their completion', () => {
    const { acknowledge, atomicAcknowledge, readResponse, unknown } = OPERATION;
    const rows = names.map((name) => {
      const opcode = WrOpcode[name];
      return [name, [ANSWERED_BY[opcode], COMPLETED_AS[opcode]]];
    });
    assert.deepEqual(Object.fromEntries(rows), {
      RDMA_WRITE: [acknowledge, WcOpcode.RDMA_WRITE],
      RDMA_WRITE_WITH_IMM: [acknowledge, WcOpcode.RDMA_WRITE],
      SEND: [acknowledge, WcOpcode.SEND],
      SEND_WITH_IMM: [acknowledge, WcOpcode.SEND],
      SEND_WITH_INV: [acknowledge, WcOpcode.SEND],
      RDMA_READ: [readResponse, WcOpcode.RDMA_READ],
      ATOMIC_CMP_AND_SWP: [atomicAcknowledge, WcOpcode.COMP_SWAP],
      ATOMIC_FETCH_AND_ADD: [atomicAcknowledge, WcOpcode.FETCH_ADD],
      LOCAL_INV: [unknown, WcOpcode.LOCAL_INV],
      BIND_MW: [unknown, WcOpcode.BIND_MW],
    });
    assert.equal(COMPLETED_AS[200], WcOpcode.SEND);
  });

  it('find the opcode of each packet, as [first, middle, last, only]', () => {
    const packets = names.map((name) => {
      const of = (first: boolean, last: boolean): number =>
        packetOpcode(WrOpcode[name], first, last);
      return [name, [of(true, false), of(false, false), of(false, true), of(true, true)]];
    });
    assert.deepEqual(Object.fromEntries(packets), {
      RDMA_WRITE: [0x06, 0x07, 0x08, 0x0a],
      RDMA_WRITE_WITH_IMM: [0x06, 0x07, 0x09, 0x0b],
      SEND: [0x00, 0x01, 0x02, 0x04],
      SEND_WITH_IMM: [0x00, 0x01, 0x03, 0x05],
      SEND_WITH_INV: [0x00, 0x01, 0x16, 0x17],
      RDMA_READ: [0x0c, 0x0c, 0x0c, 0x0c],
      ATOMIC_CMP_AND_SWP: [0x13, 0x13, 0x13, 0x13],
      ATOMIC_FETCH_AND_ADD: [0x14, 0x14, 0x14, 0x14],
      LOCAL_INV: [0, 0, 0, 0],
      BIND_MW: [0, 0, 0, 0],
    });
  });
});
