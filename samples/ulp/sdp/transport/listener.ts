/** A port that peers connect to, for SDP. */
import type { Cr, Ia, Psp } from 'dapl';
import type { StreamAddress } from '../../socket/index.js';
import { type Caller, type ServiceOptions, StreamService } from '../../socket/over-dat/index.js';
import { agreedReceiveBytes, isVersionKnown, refusalOf } from '../session/index.js';
import { type Hello, parseHello } from '../wire/index.js';
import { Adapter } from './adapter.js';
import { helloAckOf, refusalBytes } from './hellos.js';
import { limitsOf, type SdpPlan } from './options.js';
import { listenOn } from './ports.js';
import { SdpStream } from './stream.js';

/** Listen options with SdpStream as the stream type. */
export type SdpListenOptions = ServiceOptions<SdpStream>;

/** @throws DatError as `ia.createPsp` */
export function listenAt(
  ia: Ia,
  plan: SdpPlan,
  options: SdpListenOptions,
): StreamService<SdpStream> {
  const adapter = Adapter.join(ia);
  let psp: Psp;
  let port: number;
  try {
    [psp, port] = listenOn(ia, options.port);
  } catch (error) {
    adapter.leave();
    throw error;
  }
  const local = { address: options.address ?? ia.query().ia.iaAddress, port };
  return new StreamService(psp, local, options, {
    meet: (cr) => callerOf(cr, ia, plan, local),
    leave: () => adapter.leave(),
  });
}

function callerOf(
  cr: Cr,
  ia: Ia,
  plan: SdpPlan,
  local: StreamAddress,
): Caller<SdpStream> | undefined {
  const { privateData, remoteAddress } = cr;
  const hello = helloIn(privateData);
  if (hello === undefined || !isWelcome(hello)) {
    cr.reject({ privateData: refusalBytes(plan, hello?.isIpv6 ?? false) });
    return undefined;
  }
  const { isIpv6, localPort, desiredRemoteBytes } = hello;
  const remote = { address: remoteAddress, port: localPort };
  const bytes = agreedReceiveBytes(limitsOf(plan), desiredRemoteBytes);
  return {
    remote,
    make: (opening) => SdpStream.on(ia, plan, local, remote, bytes, opening),
    answer: (stream) => stream.answer(cr, privateData, hello, helloAckOf(plan, isIpv6, bytes)),
  };
}

/** The peer's Hello; undefined if the private data is none. */
function helloIn(privateData: Uint8Array): Hello | undefined {
  try {
    return parseHello(privateData);
  } catch {
    return undefined;
  }
}

function isWelcome({ version, bufs, localBytes }: Hello): boolean {
  return isVersionKnown(version) && refusalOf(bufs, localBytes) === undefined;
}
