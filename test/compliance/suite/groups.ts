/** All behaviours, in the order in which a provider's author meets them. */
import { answering } from './answering.js';
import { atomics } from './atomics.js';
import type { BehaviourGroup } from './behaviour.js';
import { breaking } from './breaking.js';
import { cnos } from './cnos.js';
import { closing } from './closing.js';
import { connectVariants } from './connect-variants.js';
import { connecting } from './connecting.js';
import { datagrams } from './datagrams.js';
import { datagramLosses } from './datagram-losses.js';
import { disconnecting } from './disconnecting.js';
import { dispatching } from './dispatching.js';
import { flowControl } from './flow-control.js';
import { givingBack } from './giving-back.js';
import { immediates } from './immediates.js';
import { keepAlive } from './keep-alive.js';
import { lifetimes } from './lifetimes.js';
import { listening } from './listening.js';
import { losing } from './losing.js';
import { modifying } from './modifying.js';
import { multicast } from './multicast.js';
import { notifying } from './notifying.js';
import { observing } from './observing.js';
import { protecting } from './protecting.js';
import { reachingMany } from './reaching-many.js';
import { registering } from './registering.js';
import { serviceIds } from './service-ids.js';
import { sharingLimits } from './sharing-limits.js';
import { sharingReceives } from './sharing-receives.js';
import { states } from './states.js';
import { transferring } from './transferring.js';
import { windows } from './windows.js';

export const behaviourGroups: readonly BehaviourGroup[] = [
  connecting,
  listening,
  answering,
  connectVariants,
  serviceIds,
  states,
  transferring,
  immediates,
  atomics,
  notifying,
  modifying,
  observing,
  flowControl,
  sharingReceives,
  sharingLimits,
  reachingMany,
  registering,
  lifetimes,
  protecting,
  windows,
  dispatching,
  cnos,
  datagrams,
  datagramLosses,
  multicast,
  disconnecting,
  losing,
  breaking,
  keepAlive,
  givingBack,
  closing,
];
