/**
 * Numbers of the InfiniBand verbs that cross the SPI. The values are those of libibverbs, so that a
 * hardware provider passes them through unchanged.
 */

/** Queue pair transport types (verbs numbering; GSI is the kernel's number for QP1). */
export const QpType = { GSI: 1, RC: 2, UC: 3, UD: 4, XRC_INI: 9, XRC_TGT: 10 } as const;
export type QpType = (typeof QpType)[keyof typeof QpType];

/** Queue pair states (IBTA 10.3.1). */
export const QpState = {
  RESET: 0,
  INIT: 1,
  RTR: 2,
  RTS: 3,
  SQD: 4,
  SQE: 5,
  ERR: 6,
} as const;
export type QpState = (typeof QpState)[keyof typeof QpState];

/** Send work request operations. */
export const WrOpcode = {
  RDMA_WRITE: 0,
  RDMA_WRITE_WITH_IMM: 1,
  SEND: 2,
  SEND_WITH_IMM: 3,
  RDMA_READ: 4,
  ATOMIC_CMP_AND_SWP: 5,
  ATOMIC_FETCH_AND_ADD: 6,
  LOCAL_INV: 7,
  BIND_MW: 8,
  SEND_WITH_INV: 9,
} as const;
export type WrOpcode = (typeof WrOpcode)[keyof typeof WrOpcode];

/** Send work request flags. INLINE: the entry holds the payload, in place of the segments. */
export const WrFlags = { FENCE: 1, SIGNALED: 2, SOLICITED: 4, INLINE: 8 } as const;

/** Completion opcodes. */
export const WcOpcode = {
  SEND: 0,
  RDMA_WRITE: 1,
  RDMA_READ: 2,
  COMP_SWAP: 3,
  FETCH_ADD: 4,
  BIND_MW: 5,
  LOCAL_INV: 6,
  RECV: 128,
  RECV_RDMA_WITH_IMM: 129,
} as const;
export type WcOpcode = (typeof WcOpcode)[keyof typeof WcOpcode];

/**
 * Completion flags. SOLICITED is ours: the sender set the solicited event bit. Verbs does not
 * report it, so nothing may depend on it.
 */
export const WcFlags = { GRH: 1, WITH_IMM: 2, WITH_INV: 8, SOLICITED: 0x20 } as const;

/** Completion statuses (IBTA 11.6.2). */
export const WcStatus = {
  SUCCESS: 0,
  LOC_LEN_ERR: 1,
  LOC_QP_OP_ERR: 2,
  LOC_EEC_OP_ERR: 3,
  LOC_PROT_ERR: 4,
  WR_FLUSH_ERR: 5,
  MW_BIND_ERR: 6,
  BAD_RESP_ERR: 7,
  LOC_ACCESS_ERR: 8,
  REM_INV_REQ_ERR: 9,
  REM_ACCESS_ERR: 10,
  REM_OP_ERR: 11,
  RETRY_EXC_ERR: 12,
  RNR_RETRY_EXC_ERR: 13,
  LOC_RDD_VIOL_ERR: 14,
  REM_INV_RD_REQ_ERR: 15,
  REM_ABORT_ERR: 16,
  INV_EECN_ERR: 17,
  INV_EEC_STATE_ERR: 18,
  FATAL_ERR: 19,
  RESP_TIMEOUT_ERR: 20,
  GENERAL_ERR: 21,
} as const;
export type WcStatus = (typeof WcStatus)[keyof typeof WcStatus];

/** Memory region, memory window and queue pair access rights (bit set). */
export const Access = {
  LOCAL_WRITE: 1,
  REMOTE_WRITE: 2,
  REMOTE_READ: 4,
  REMOTE_ATOMIC: 8,
  MW_BIND: 16,
  ZERO_BASED: 32,
} as const;

/** Asynchronous events (IBTA 11.6.3). */
export const AsyncEventType = {
  CQ_ERR: 0,
  QP_FATAL: 1,
  QP_REQ_ERR: 2,
  QP_ACCESS_ERR: 3,
  COMM_EST: 4,
  SQ_DRAINED: 5,
  PATH_MIG: 6,
  PATH_MIG_ERR: 7,
  DEVICE_FATAL: 8,
  PORT_ACTIVE: 9,
  PORT_ERR: 10,
  LID_CHANGE: 11,
  PKEY_CHANGE: 12,
  SM_CHANGE: 13,
  SRQ_ERR: 14,
  SRQ_LIMIT_REACHED: 15,
  QP_LAST_WQE_REACHED: 16,
  CLIENT_REREGISTER: 17,
  GID_CHANGE: 18,
} as const;
export type AsyncEventType = (typeof AsyncEventType)[keyof typeof AsyncEventType];

/** Path MTU codes of the CM and of QP attributes (IBTA 12.7.10): code = log2(bytes) - 7. */
export const PATH_MTU_BYTES: readonly number[] = [0, 256, 512, 1024, 2048, 4096];

/**
 * Payload of a packet between two software HCAs of one host that have agreed on it: 14 pages.
 * Unaligned, they touch 15. With one piece before and one behind, that makes the 17 pieces of
 * memory that Linux allows a datagram. Not a path MTU of IBTA: it has no code.
 */
export const LOCAL_MTU_BYTES = 57344;

/**
 * Payload of a packet through memory which both devices have mapped: a message of up to 1 MiB is
 * one packet. No path MTU of IBTA either.
 */
export const CHANNEL_MTU_BYTES = 1 << 20;

/** Full-member default partition key: the only one on RoCE. */
export const DEFAULT_PKEY = 0xffff;
/** Queue pair number and Q_Key of the General Services Interface (IBTA 13.5.3.3). */
export const GSI_QPN = 1;
export const GSI_QKEY = 0x80010000;
/** Bytes of the GRH area in front of every datagram receive buffer (IBTA 11.4.1.2). */
export const GRH_LENGTH = 40;

/** The name of a number in one of the tables above, for messages and traces. */
export function nameOf(table: Readonly<Record<string, number>>, value: number): string {
  for (const name of Object.keys(table)) if (table[name] === value) return name;
  return `unknown(${value})`;
}
