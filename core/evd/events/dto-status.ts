/**
 * DTO completion statuses and operations (dat.h), and how work completions map to them: as dapl's
 * dapls_ib_get_dto_status (dapl/openib_common/cq.c).
 */
import { WcFlags, WcOpcode, WcStatus } from '../../spi/index.js';
import { DatEventNumber, type DtoCompletionEvent } from './event.js';

type DtoEventNumber = DtoCompletionEvent['number'];

/** DAT_DTO_COMPLETION_STATUS. */
export const DatDtoStatus = {
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
} as const;
export type DatDtoStatus = (typeof DatDtoStatus)[keyof typeof DatDtoStatus];

/** DAT_DTOS; from EXTENSION_BASE on, the DTOs of the IB extensions. */
export const DatDto = {
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
} as const;
export type DatDto = (typeof DatDto)[keyof typeof DatDto];

const STATUS_BY_WC: Readonly<Record<WcStatus, DatDtoStatus>> = {
  [WcStatus.SUCCESS]: DatDtoStatus.SUCCESS,
  [WcStatus.LOC_LEN_ERR]: DatDtoStatus.LOCAL_LENGTH,
  [WcStatus.LOC_QP_OP_ERR]: DatDtoStatus.LOCAL_EP,
  [WcStatus.LOC_EEC_OP_ERR]: DatDtoStatus.TRANSPORT,
  [WcStatus.LOC_PROT_ERR]: DatDtoStatus.LOCAL_PROTECTION,
  [WcStatus.WR_FLUSH_ERR]: DatDtoStatus.FLUSHED,
  [WcStatus.MW_BIND_ERR]: DatDtoStatus.RMR_OPERATION_FAILED,
  [WcStatus.BAD_RESP_ERR]: DatDtoStatus.BAD_RESPONSE,
  [WcStatus.LOC_ACCESS_ERR]: DatDtoStatus.LOCAL_PROTECTION,
  [WcStatus.REM_INV_REQ_ERR]: DatDtoStatus.REMOTE_RESPONDER,
  [WcStatus.REM_ACCESS_ERR]: DatDtoStatus.REMOTE_ACCESS,
  [WcStatus.REM_OP_ERR]: DatDtoStatus.REMOTE_RESPONDER,
  [WcStatus.RETRY_EXC_ERR]: DatDtoStatus.TRANSPORT,
  [WcStatus.RNR_RETRY_EXC_ERR]: DatDtoStatus.RECEIVER_NOT_READY,
  [WcStatus.LOC_RDD_VIOL_ERR]: DatDtoStatus.LOCAL_PROTECTION,
  [WcStatus.REM_INV_RD_REQ_ERR]: DatDtoStatus.REMOTE_RESPONDER,
  [WcStatus.REM_ABORT_ERR]: DatDtoStatus.REMOTE_RESPONDER,
  [WcStatus.INV_EECN_ERR]: DatDtoStatus.TRANSPORT,
  [WcStatus.INV_EEC_STATE_ERR]: DatDtoStatus.TRANSPORT,
  [WcStatus.FATAL_ERR]: DatDtoStatus.TRANSPORT,
  [WcStatus.RESP_TIMEOUT_ERR]: DatDtoStatus.RECEIVER_NOT_READY,
  [WcStatus.GENERAL_ERR]: DatDtoStatus.TRANSPORT,
};

const DTO_BY_WC: Readonly<Record<WcOpcode, DatDto>> = {
  [WcOpcode.SEND]: DatDto.SEND,
  [WcOpcode.RDMA_WRITE]: DatDto.RDMA_WRITE,
  [WcOpcode.RDMA_READ]: DatDto.RDMA_READ,
  [WcOpcode.COMP_SWAP]: DatDto.CMP_SWAP,
  [WcOpcode.FETCH_ADD]: DatDto.FETCH_ADD,
  [WcOpcode.BIND_MW]: DatDto.BIND_MW,
  [WcOpcode.LOCAL_INV]: DatDto.LMR_INVALIDATE,
  [WcOpcode.RECV]: DatDto.RECEIVE,
  [WcOpcode.RECV_RDMA_WITH_IMM]: DatDto.RECV_IMMED,
};

// Tables of bytes for the data path: V8 treats an object with number keys as a hash table.
const STATUSES = new Uint8Array(256).fill(DatDtoStatus.FLUSHED);
for (const [wc, status] of Object.entries(STATUS_BY_WC)) STATUSES[Number(wc)] = status;
const DTOS = new Uint8Array(256).fill(DatDto.SEND);
for (const [wc, dto] of Object.entries(DTO_BY_WC)) DTOS[Number(wc)] = dto;

/** Operations from here on belong to the IB extensions. */
const EXTENSION_BASE = DatDto.RDMA_WRITE_IMMED;

/** The event number for a DTO. */
export function dtoEventNumber(dto: DatDto): DtoEventNumber {
  return dto < EXTENSION_BASE ? DatEventNumber.DTO_COMPLETION : DatEventNumber.IB_DTO;
}

/** The DTO status of a work completion's status; FLUSHED if it is unknown. */
export function dtoStatusOf(wcStatus: number): DatDtoStatus {
  return (STATUSES[wcStatus] ?? DatDtoStatus.FLUSHED) as DatDtoStatus;
}

/**
 * The DTO of a completion's opcode and flags. Core itself sets WITH_IMM on a write: verbs has one
 * opcode for both kinds.
 */
export function dtoOf(wcOpcode: number, wcFlags: number): DatDto {
  if ((wcFlags & (WcFlags.WITH_IMM | WcFlags.WITH_INV)) !== 0) {
    const withInvalidate = (wcFlags & WcFlags.WITH_INV) !== 0;
    if (wcOpcode === WcOpcode.RDMA_WRITE) return DatDto.RDMA_WRITE_IMMED;
    if (wcOpcode === WcOpcode.RECV) {
      return withInvalidate ? DatDto.RECEIVE_WITH_INVALIDATE : DatDto.RECV_MSG_IMMED;
    }
  }
  return (DTOS[wcOpcode] ?? DatDto.SEND) as DatDto;
}
