/** Where rdma_rxe of Linux 6.1 is not what IBTA says, and no provider can make it so. */
import type { Deviation } from 'dapl/testing';

export const RXE_DEVIATIONS: Readonly<Record<string, Deviation>> = {};
