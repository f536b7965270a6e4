/**
 * For a provider whose CM is not this one, such as the kernel's behind librdmacm: what any CM
 * checks, does to its queue pairs and says for reasons. Providers import this entry and index.ts,
 * and nothing else of this folder.
 */
export {
  checkConnectOptions,
  checkParameters,
  checkPeer,
  checkPrivateData,
  checkRange,
} from './common/checks.js';
export { TableRunner, row } from './common/table-runner.js';
export type { Machine, Row, StateTable } from './common/table-runner.js';
export { QpControl, checkConnectable } from './connection/qp-control.js';
export type { CommEstListener, QpPlan } from './connection/qp-control.js';
export { REJECT_REASON, rejectReasonName } from './wire/reject-reason.js';
export { REJECT_INFO_LENGTH } from './wire/rej.js';
