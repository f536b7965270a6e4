/** Parts for MAD modules of providers whose agents are the operating system's. */
export { Agent } from './agent.js';
export { MethodTable } from './method-table.js';
export type { MadPort, PortAddress, WorkRequest } from './port.js';
export { newRmppCounters } from './rmpp-counters.js';
export type { RmppCounters } from './rmpp-counters.js';
export { DEFAULT_RMPP_LIMITS, RmppAllowance } from './rmpp-limits.js';
export { checkSend } from './send-checks.js';
