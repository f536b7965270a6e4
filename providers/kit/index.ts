/**
 * What a provider over a packet port is made of (`dapl/provider-kit`): `hcaProvider` makes one of a
 * name, a key and a port; the parts are for ports, and for providers with a device of their own.
 */
export {
  bindNode,
  copyBytes,
  type HostNode,
  monotonicClock,
  NextTurn,
  Numbered,
  offsetAt,
  onExit,
  PathTable,
  ProcessHoldCounter,
  RealTimer,
  RegionTable,
  SystemRandom,
} from '../host/index.js';
export { icrcPacket, PseudoHeader, readIcrc, writeIcrc } from '../hca/wire/icrc.js';
export { rnrTimerUs } from '../hca/wire/rnr-timer.js';
export { checkPort, type HcaParameters } from '../hca/index.js';
export { hcaProvider, type HcaProviderHooks, type HcaProviderOptions } from './hca-provider.js';
