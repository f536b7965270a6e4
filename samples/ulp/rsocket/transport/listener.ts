/** A port that peers connect to, for rsockets. */
import type { Cr, Ia, Psp } from 'dapl';
import { type Caller, type ServiceOptions, StreamService } from '../../socket/over-dat/index.js';
import { type ConnectionData, decodeConnectionData } from '../wire/index.js';
import { Adapter } from './adapter.js';
import type { RsocketPlan } from './options.js';
import { RsocketStream } from './stream.js';

/** Listen options with RsocketStream as the stream type. */
export type RsocketListenOptions = ServiceOptions<RsocketStream>;

/** @throws DatError as `ia.createPsp` */
export function listenAt(
  ia: Ia,
  plan: RsocketPlan,
  options: RsocketListenOptions,
): StreamService<RsocketStream> {
  const adapter = Adapter.join(ia);
  const { port, address } = options;
  let psp: Psp;
  try {
    psp = port === 0 ? ia.createPspAny() : ia.createPsp({ connQual: port });
  } catch (error) {
    adapter.leave();
    throw error;
  }
  const local = { address: address ?? ia.query().ia.iaAddress, port: psp.connQual };
  return new StreamService(psp, local, options, {
    meet: (cr) => callerOf(cr, ia, plan),
    leave: () => adapter.leave(),
  });
}

function callerOf(cr: Cr, ia: Ia, plan: RsocketPlan): Caller<RsocketStream> | undefined {
  const peer = dataOf(cr);
  if (peer === undefined) return undefined;
  const { remoteAddress, remotePort } = cr.query();
  const remote = { address: remoteAddress, port: remotePort };
  return {
    remote,
    make: (opening) => RsocketStream.on(ia, plan, remote, opening),
    answer: (stream) => stream.answer(cr, peer),
  };
}

/** The peer's connection data; undefined if it is not an rsocket, or has another version. */
function dataOf(cr: Cr): ConnectionData | undefined {
  try {
    return decodeConnectionData(cr.privateData);
  } catch {
    return undefined;
  }
}
