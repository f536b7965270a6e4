/** All behaviours, in the order in which a provider's author meets them. */
import { atomics } from './atomics.js';
import type { BehaviourGroup } from './behaviour.js';
import { closing } from './closing.js';
import { connecting } from './connecting.js';
import { disconnecting } from './disconnecting.js';
import { dispatching } from './dispatching.js';
import { flowControl } from './flow-control.js';
import { immediates } from './immediates.js';
import { protecting } from './protecting.js';
import { registering } from './registering.js';
import { sharingReceives } from './sharing-receives.js';
import { states } from './states.js';
import { transferring } from './transferring.js';
import { windows } from './windows.js';

export const behaviourGroups: readonly BehaviourGroup[] = [
  connecting,
  states,
  transferring,
  immediates,
  atomics,
  flowControl,
  sharingReceives,
  registering,
  protecting,
  windows,
  dispatching,
  disconnecting,
  closing,
];
