/** The opcode in the completion of a request, by the opcode of the request: SEND by default. */
import { WcOpcode, WrOpcode } from '../../../core/spi/index.js';

export const WC_OPCODE = new Uint8Array(256);
WC_OPCODE[WrOpcode.RDMA_WRITE] = WcOpcode.RDMA_WRITE;
WC_OPCODE[WrOpcode.RDMA_WRITE_WITH_IMM] = WcOpcode.RDMA_WRITE;
WC_OPCODE[WrOpcode.RDMA_READ] = WcOpcode.RDMA_READ;
WC_OPCODE[WrOpcode.ATOMIC_CMP_AND_SWP] = WcOpcode.COMP_SWAP;
WC_OPCODE[WrOpcode.ATOMIC_FETCH_AND_ADD] = WcOpcode.FETCH_ADD;
WC_OPCODE[WrOpcode.LOCAL_INV] = WcOpcode.LOCAL_INV;
WC_OPCODE[WrOpcode.BIND_MW] = WcOpcode.BIND_MW;
