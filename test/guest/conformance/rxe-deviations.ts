/** Where rdma_rxe of Linux 6.1 is not what IBTA says, and no provider can make it so. */
import type { Deviation } from 'dapl/testing';

const ANY_FAILURE = 'a receive that cannot be filled, for whatever reason, fails as LOC_QP_OP_ERR';
const OTHER_ZONE = 'another zone: new receives are of that zone, old ones are protection errors';
const NO_BOUNDS = 'the bounds of a window are not checked: it grants all of its region';

export const RXE_DEVIATIONS: Readonly<Record<string, Deviation>> = {
  'Immediate data: RDMA write with immediate, wrong rkey: REMOTE_ACCESS as RDMA_WRITE_IMMED': {
    why: 'the responder takes the receive first, and fails it with the error of the key',
    failsWith: /dto 1 REMOTE_ACCESS,BROKEN/,
  },
  [`Modifying endpoints: ${OTHER_ZONE}`]: { why: ANY_FAILURE, failsWith: /dto 1 LOCAL_EP/ },
  'Receives: a receive too small: LOCAL_LENGTH here, REMOTE_RESPONDER there, one BROKEN': {
    why: ANY_FAILURE,
    failsWith: /dto 1 LOCAL_EP/,
  },
  'Limits of shared receives: a message longer than its receive fails it, and leaves the others': {
    why: ANY_FAILURE,
    failsWith: /dto 11 LOCAL_EP/,
  },
  'Losing datagrams: a datagram too long for its receive is dropped, and the receive stays': {
    why: ANY_FAILURE,
    failsWith: /LOCAL_EP/,
  },
  'Sharing receives: an SRQ may be of another zone than its endpoints': {
    why: "keys of a shared queue are looked up in the queue pair's domain",
    failsWith: /dto 1 LOCAL_EP/,
  },
  'Windows: an RMR of the zone grants its part of the region, and no byte more': {
    why: NO_BOUNDS,
    failsWith: /dto 1 SUCCESS/,
  },
  'Windows: an RMR of the endpoint grants its part of the region, and no byte more': {
    why: NO_BOUNDS,
    failsWith: /dto 1 SUCCESS/,
  },
  'Protecting memory: keys are not to be guessed: no two regions in a row have near ones': {
    why: 'keys are numbers in sequence, with eight random bits',
    failsWith: /\d+ !== 63/,
    mayHold: true,
  },
};
