/**
 * Wrapping a provider (`dapl/spi/decorators`): any of its parts, by a function; the traffic of its
 * device, by an observer; and a guard that names each breach of the contract.
 */
export {
  decorate,
  decorateModule,
  type DecorateOptions,
  type Decorator,
  type DecoratorContext,
  type TimedContext,
  type Decorators,
} from './decorate.js';
export type {
  CompletedOpcode,
  ObservedCompletion,
  PostedOpcode,
  PostedRequest,
} from './entries.js';
export {
  observe,
  observedDevice,
  type Observer,
  type ObserverContext,
  type ObserverFactory,
} from './observe.js';
export { over, type Over } from './over.js';
export { type Breach, BREACHES, type BreachRule, strict, strictDevice } from './strict.js';
