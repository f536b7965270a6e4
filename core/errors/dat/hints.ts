/**
 * What to do about an error when the place that threw it had no better advice: by subtype where
 * that says more, else by type.
 */
import type { DatSubtype, DatType } from './codes.js';

const BY_TYPE: Readonly<Record<DatType, string>> = {
  DAT_ABORT: 'what was waited for is gone; wait on another object',
  DAT_CONN_QUAL_IN_USE: 'listen on another qualifier, or free the one that listens',
  DAT_INSUFFICIENT_RESOURCES: 'free what is not needed; the limits are in ia.query()',
  DAT_INTERNAL_ERROR: 'the cause says what the provider met',
  DAT_INVALID_HANDLE: 'an object is of one adapter, and of no use once it is freed',
  DAT_INVALID_PARAMETER: 'the message says what the parameter may be',
  DAT_INVALID_STATE: 'docs/states.md says what is legal in which state',
  DAT_LENGTH_ERROR: 'the message says how long it may be',
  DAT_MODEL_NOT_SUPPORTED: 'ia.query() says what the provider can do',
  DAT_PROVIDER_NOT_FOUND: 'docs/registry.md says how providers are found',
  DAT_PRIVILEGES_VIOLATION: 'register the memory with the privileges that the message names',
  DAT_PROTECTION_VIOLATION: 'region and endpoint must be of one protection zone',
  DAT_QUEUE_EMPTY: 'try again when there are events',
  DAT_QUEUE_FULL: 'dequeue events, or resize the EVD',
  DAT_TIMEOUT_EXPIRED: 'wait longer, or find out why nothing comes',
  DAT_PROVIDER_ALREADY_REGISTERED: 'register it under another name',
  DAT_PROVIDER_IN_USE: 'close its interface adapters first',
  DAT_INVALID_ADDRESS: 'give an IP address that the device can reach',
  DAT_INTERRUPTED_CALL: 'its AbortSignal was aborted; call again if that was not meant',
  DAT_CONN_QUAL_UNAVAILABLE: 'free service points that are not needed',
  DAT_RESERVED_LMR: 'use a region of your own',
  DAT_PORT_IN_USE: 'use another address or port',
  DAT_COMM_NOT_SUPPORTED: 'ia.query() says what the provider can do',
  DAT_EXTENSION_BASE: 'ia.query() says what the provider can do',
  DAT_NOT_IMPLEMENTED: 'ia.query() says what the provider can do',
};

const BY_SUBTYPE: Readonly<Partial<Record<DatSubtype, string>>> = {
  DAT_RESOURCE_CREDITS: 'dequeue completions, or make the endpoint with more DTOs',
  DAT_INVALID_STATE_EP_NOTREADY: 'the peer does not answer yet; try again',
  DAT_INVALID_STATE_EVD_UNWAITABLE: 'evd.clearUnwaitable() makes it waitable again',
  DAT_INVALID_STATE_EVD_WAITER: 'one waiter or iterator at a time',
  DAT_INVALID_STATE_EVD_IN_USE: 'free the endpoints and service points that feed it first',
  DAT_INVALID_STATE_IA_IN_USE: 'free its objects first, or close it abruptly',
  DAT_INVALID_STATE_LMR_IN_USE: 'wait for the completions of requests that use it; unbind its RMRs',
  DAT_INVALID_STATE_PZ_IN_USE: 'free the objects of the zone first',
  DAT_INVALID_STATE_SRQ_IN_USE: 'receives go to srq.postRecv(); free its endpoints before it',
  DAT_INVALID_STATE_CNO_IN_USE: 'take it from its EVDs and end its waiters first',
};

/** One line on what to do. */
export function hintFor(type: DatType, subtype: DatSubtype | undefined): string {
  return (subtype && BY_SUBTYPE[subtype]) ?? BY_TYPE[type];
}
