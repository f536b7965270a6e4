/** What both ends of a connection by numbers have to agree on. */

export const MTU_BYTES = 1024;
/** Of the first packet of an initiator. */
export const FIRST_PSN = 1;
