/** Decides when the HCA sends, polls, delivers, yields and sleeps: pure decisions, from tables. */
export { HandlerPacer } from './pacer.js';
export { LIMITS } from './limits.js';
export { LoopPacer, type Polled } from './loop-pacer.js';
export { Pacer } from './pacer.js';
export { type Gain, PollGain } from './poll-gain.js';
export { ROUND } from './pumping.js';
export { DOORBELL, ORDER } from './sending.js';
export { SpinPacer } from './loop-pacer.js';
export { CONVERSATION, REQUEST } from './turning.js';
