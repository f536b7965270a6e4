/**
 * Parts for a provider with a CM of its own, such as the kernel's behind librdmacm: checks, queue
 * pair transitions and reject reasons. Providers import this entry and index.ts, and nothing else
 * of this folder.
 */
export {
  checkAccept,
  checkReject,
  checkResolveAccept,
  checkResolveReject,
  requestGone,
} from './common/answers.js';
export { checkConnectOptions, checkPeer, checkPrivateData, checkRange } from './common/checks.js';
export { deferring, messageOf, startWithin } from './common/consumer.js';
export { TableRunner, row } from './common/table-runner.js';
export type { Actions, Machine, StateTable } from './common/table-runner.js';
export { checkConnectable } from './common/transport.js';
export { QpControl } from './connection/qp-control.js';
export type { CommEstListener, QpPlan } from './connection/qp-control.js';
export { NO_DATA } from './wire/cm-codec.js';
export { REJECT_REASON, rejectReasonName } from './wire/rej.js';
export { serviceName } from './wire/cma-header.js';
export { timeUsOfCode } from './common/timing.js';
