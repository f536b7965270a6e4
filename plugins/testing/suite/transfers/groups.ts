/** All groups of behaviours, in the order in which they are reported. */
import { answering } from '../connections/answering.js';
import { atomics } from './atomics.js';
import type { BehaviourGroup } from '../behaviour.js';
import { breaking } from '../connections/breaking.js';
import { cnos } from '../objects/cnos.js';
import { closing } from '../connections/closing.js';
import { connecting, connectVariants } from '../connections/connecting.js';
import { datagrams } from './datagrams.js';
import { datagramLosses } from './datagram-losses.js';
import { disconnecting } from '../connections/disconnecting.js';
import { dispatching } from '../objects/dispatching.js';
import { flowControl } from './flow-control.js';
import { givingBack } from './giving-back.js';
import { immediates } from './immediates.js';
import { keepAlive } from '../connections/keep-alive.js';
import { lifetimes } from '../connections/lifetimes.js';
import { listening } from '../connections/listening.js';
import { losing } from '../connections/losing.js';
import { modifying } from '../objects/modifying.js';
import { multicast } from './multicast.js';
import { notifying } from '../objects/notifying.js';
import { observing } from '../objects/observing.js';
import { protecting } from '../objects/protecting.js';
import { reachingMany } from './reaching-many.js';
import { registering } from '../objects/registering.js';
import { serviceIds } from '../connections/service-ids.js';
import { sharingLimits } from './sharing-limits.js';
import { sharingReceives } from './sharing-receives.js';
import { states } from '../connections/states.js';
import { transferring } from './transferring.js';
import { windows } from '../objects/windows.js';

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
