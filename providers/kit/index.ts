/**
 * Building blocks of a provider over a packet port (`dapl/provider-kit`). `hcaProvider` makes one
 * from a name, a key and a port. The parts are for ports, and for providers with a device of their
 * own.
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
export { rnrTimerUs } from '../hca/wire/aeth-syndrome.js';
export { checkPort, type HcaParameters } from '../hca/index.js';
export { hcaProvider, type HcaProviderHooks, type HcaProviderOptions } from './hca-provider.js';
