/*
 * A librdmacm without a kernel: identifiers of one process connect to each other in memory. For
 * tests of what is built on librdmacm. The calls are those of rdmacm_abi.h; here is what only a
 * fake can do.
 *
 * What it does as librdmacm and the kernel do:
 * - Every answer is an event on the channel's descriptor; rdma_get_cm_event waits when there is
 *   none and the descriptor is not O_NONBLOCK.
 * - rdma_destroy_id with an event that has not been acknowledged would wait for ever: here it ends
 *   the process with a sentence.
 * - An identifier of a connection request has its listener's context and channel. Its events are
 *   dropped until it is accepted.
 * - A listener holds `backlog` requests that nobody has fetched; further ones are sent again.
 * - Private data arrives padded with zeros to the length of its field.
 * - Addresses belong to a device; a port has one owner an address and port space. A wildcard owner
 *   in the way is EADDRNOTAVAIL, another one EADDRINUSE.
 * - Queue pairs are the caller's: rdma_init_qp_attr tells what to do with them, and in which state
 *   it can.
 */
#ifndef FAKE_RDMACM_H
#define FAKE_RDMACM_H

#include "abi/rdmacm_abi.h"

/* What goes wrong, or does not come, while a switch is not 0. */
enum fake_rdmacm_switch {
  FAKE_ADDR_STATUS,   /* status of an ADDR_ERROR in place of ADDR_RESOLVED */
  FAKE_ROUTE_STATUS,  /* status of a ROUTE_ERROR in place of ROUTE_RESOLVED */
  FAKE_ADDR_SILENT,   /* address resolution has no end */
  FAKE_DROP_REQ,      /* requests, SIDR's too, are lost */
  FAKE_UNREACHABLE,   /* requests, SIDR's too, end as UNREACHABLE */
  FAKE_DROP_REP,      /* replies are lost: the accepting side ends as UNREACHABLE */
  FAKE_DROP_RTU,      /* the accepting side is established by rdma_notify only */
  FAKE_DROP_DREQ,     /* the side that disconnects ends by DISCONNECTED, -ETIMEDOUT */
  FAKE_NO_TIMEWAIT,   /* TIMEWAIT_EXIT never comes */
  FAKE_IWARP,         /* the device says that it is one: no CONNECT_RESPONSE, no timewait */
  FAKE_UNREADABLE,    /* errno with which every reading of events fails */
  FAKE_LID,           /* of every peer: its path is one of InfiniBand */
  FAKE_SWITCHES,
};

void fake_rdmacm_set(enum fake_rdmacm_switch which, int value);
/* A local address, of the device of that name (at most 8 devices, 32 addresses). */
int fake_rdmacm_add_address(const struct sockaddr *address, const char *device);
/* Back to no switch, no injection, and the addresses of device fake0 (addresses.c). */
void fake_rdmacm_reset(void);
/* An event of that type to every identifier that is bound to a device. */
/* `device` NULL: of all. */
void fake_rdmacm_raise(enum rdma_cm_event_type type, int status, const char *device);
/* Identifiers, channels and unacknowledged events that there are. */
unsigned fake_rdmacm_live(void);
/* The nth call (1 is the next one) of that function fails with the errno given, once. */
int fake_rdmacm_inject(const char *function, unsigned nth, int error);
/* How often it has been called since the last reset. */
unsigned fake_rdmacm_calls(const char *function);

#endif
