/** dapl/rx: the DAT API in operators. Streams over objects of an open adapter, made of rxjs. */
export { accepting, type AcceptingOptions } from './accepting.js';
export { completionOf } from './completion-of.js';
export type { RequestCompletion } from './completions.js';
export { connected, states } from './connected.js';
export { type Received, receives, type ReceivesOptions } from './receives.js';
export { type Upcalls, upcalls, type UpcallsOptions } from './upcalls.js';
