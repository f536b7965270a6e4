import assert from 'node:assert/strict';
import * as dapl from '../../../core/index.js';

/** DAT's numbers, as its headers have them (dat.h, kdat.h). */
const TABLES: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  CompletionFlags: {
    DEFAULT: 0x00,
    SUPPRESS: 0x01,
    SOLICITED_WAIT: 0x02,
    UNSIGNALLED: 0x04,
    BARRIER_FENCE: 0x08,
    EVD_THRESHOLD: 0x10,
  },
  MemPrivileges: {
    NONE: 0,
    LOCAL_READ: 0x01,
    REMOTE_READ: 0x02,
    LOCAL_WRITE: 0x10,
    REMOTE_WRITE: 0x20,
    ALL: 0x33,
    REMOTE_ATOMIC: 0x40,
  },
  MemType: {
    VIRTUAL: 0,
    LMR: 1,
    SHARED_VIRTUAL: 2,
    PHYSICAL: 0x10,
    PLATFORM: 0x20,
    IA: 0x40,
    BYPASS: 0x80,
    PHYSICAL_VAR_PAGES: 0x100,
  },
  VaType: { VA: 0, ZB: 1 },
  Qos: { BEST_EFFORT: 0, HIGH_THROUGHPUT: 1, LOW_LATENCY: 2, ECONOMY: 4, PREMIUM: 8 },
  ConnectFlags: { DEFAULT: 0, MULTIPATH_REQUESTED: 1, MULTIPATH_REQUIRED: 2 },
  PspFlags: { CONSUMER: 0, PROVIDER: 1 },
  EvdFlags: {
    SOFTWARE: 0x001,
    CR: 0x010,
    DTO: 0x020,
    CONNECTION: 0x040,
    RMR_BIND: 0x080,
    ASYNC: 0x100,
    DEFAULT: 0x1f0,
  },
  EvdState: {
    ENABLED: 1,
    DISABLED: 2,
    WAITABLE: 4,
    UNWAITABLE: 8,
    CONFIG_NOTIFY: 0x10,
    CONFIG_SOLICITED: 0x20,
    CONFIG_THRESHOLD: 0x30,
  },
  SrqState: { ERROR: 0, OPERATIONAL: 1, SHUTDOWN: 2 },
  EpState: {
    UNCONNECTED: 0,
    UNCONFIGURED_UNCONNECTED: 1,
    RESERVED: 2,
    UNCONFIGURED_RESERVED: 3,
    PASSIVE_CONNECTION_PENDING: 4,
    UNCONFIGURED_PASSIVE: 5,
    ACTIVE_CONNECTION_PENDING: 6,
    TENTATIVE_CONNECTION_PENDING: 7,
    UNCONFIGURED_TENTATIVE: 8,
    CONNECTED: 9,
    DISCONNECT_PENDING: 10,
    DISCONNECTED: 11,
    COMPLETION_PENDING: 12,
    CONNECTED_SINGLE_PATH: 13,
    CONNECTED_MULTI_PATH: 14,
  },
  DatEventNumber: {
    DTO_COMPLETION: 0x00001,
    RMR_BIND_COMPLETION: 0x01001,
    CONNECTION_REQUEST: 0x02001,
    ESTABLISHED: 0x04001,
    PEER_REJECTED: 0x04002,
    NON_PEER_REJECTED: 0x04003,
    ACCEPT_COMPLETION_ERROR: 0x04004,
    DISCONNECTED: 0x04005,
    BROKEN: 0x04006,
    TIMED_OUT: 0x04007,
    UNREACHABLE: 0x04008,
    ASYNC_EVD_OVERFLOW: 0x08001,
    ASYNC_IA_CATASTROPHIC: 0x08002,
    ASYNC_EP_BROKEN: 0x08003,
    ASYNC_TIMED_OUT: 0x08004,
    ASYNC_PROVIDER_INTERNAL_ERROR: 0x08005,
    ASYNC_HA_DOWN_TO_1: 0x08101,
    ASYNC_HA_UP_TO_MULTI_PATH: 0x08102,
    SOFTWARE: 0x10001,
    IB_DTO: 0x40000,
  },
  DatDtoStatus: {
    SUCCESS: 0,
    FLUSHED: 1,
    LOCAL_LENGTH: 2,
    LOCAL_EP: 3,
    LOCAL_PROTECTION: 4,
    BAD_RESPONSE: 5,
    REMOTE_ACCESS: 6,
    REMOTE_RESPONDER: 7,
    TRANSPORT: 8,
    RECEIVER_NOT_READY: 9,
    PARTIAL_PACKET: 10,
    RMR_OPERATION_FAILED: 11,
    LOCAL_MM_ERROR: 12,
  },
  DatDto: {
    SEND: 0,
    RDMA_WRITE: 1,
    RDMA_READ: 2,
    RECEIVE: 3,
    RECEIVE_WITH_INVALIDATE: 4,
    BIND_MW: 5,
    LMR_FMR: 6,
    LMR_INVALIDATE: 7,
    RDMA_WRITE_IMMED: 8,
    RECV_IMMED: 9,
    FETCH_ADD: 10,
    CMP_SWAP: 11,
    RECV_MSG_IMMED: 12,
    SEND_UD: 13,
    RECV_UD: 14,
    RECV_UD_IMMED: 15,
  },
};

describe("DAT's numbers", () => {
  for (const [name, expected] of Object.entries(TABLES)) {
    it(name, () => {
      const ours = (dapl as Readonly<Record<string, unknown>>)[name] as Record<string, number>;
      for (const [key, value] of Object.entries(expected)) assert.equal(ours[key], value, key);
    });
  }

  it('AsyncErrorReason', () => {
    assert.deepEqual(dapl.AsyncErrorReason, {
      IA: { CATASTROPHIC: 0, OTHER: 1 },
      EP: { TRANSFER_TO_ERROR: 0, OTHER: 1, SRQ_SOFT_HIGH_WATERMARK: 2 },
      EVD: { OVERFLOW: 0, OTHER: 1 },
      SRQ: { TRANSFER_TO_ERROR: 0, OTHER: 1, LOW_WATERMARK: 2 },
      OTHER: { OTHER: 0 },
    });
  });
});
