/**
 * Checks that the arrays of a packet port are large enough: in smaller ones nothing would ever
 * move.
 */
import { checkValue, instanceOf, type Kind, kindOf } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import {
  CHANNEL_MTU_BYTES,
  LOCAL_MTU_BYTES,
  type PacketPort,
  PATH_MTU_BYTES,
  PLACE,
  RX,
  TX,
  TX_SEGMENT,
} from '../../../core/spi/index.js';
import type { HcaParameters } from './parameters.js';

/** A response may come in two segments, a request with a segment more than it was posted with. */
const LEAST_SEGMENTS = 2;
/** The longest headers. */
const HEADER_BYTES = 48;
const GIDS = kindOf<readonly unknown[]>(
  'a list of GIDs, of 16 bytes each',
  (gids) => Array.isArray(gids) && gids.length > 0 && gids.every(isGid),
);
const MTU = kindOf<number>(`one of ${PATH_MTU_BYTES.slice(1).join(', ')}`, (mtu) =>
  PATH_MTU_BYTES.slice(1).includes(mtu as number),
);

/**
 * Checks that the port has what the HCA needs (docs/packet-port.md).
 * @throws SpiError('EINVAL') naming the member, its length and the least
 */
export function checkPort(port: PacketPort, { maxSge }: Pick<HcaParameters, 'maxSge'>): void {
  checkValue('gids of the packet port', port.gids, GIDS, einval);
  checkValue('mtuBytes of the packet port', port.mtuBytes, MTU, einval);
  const { mtuBytes, localMtuBytes } = port;
  if (localMtuBytes !== undefined && localMtuBytes !== LOCAL_MTU_BYTES) {
    throw einval('localMtuBytes of the packet port', localMtuBytes, `${LOCAL_MTU_BYTES} or absent`);
  }
  const { channelMtuBytes } = port;
  if (channelMtuBytes !== undefined && channelMtuBytes !== CHANNEL_MTU_BYTES) {
    const expected = `${CHANNEL_MTU_BYTES} or absent`;
    throw einval('channelMtuBytes of the packet port', channelMtuBytes, expected);
  }
  const segments = Math.max(maxSge + 1, LEAST_SEGMENTS);
  checkArray('rxArena', port.rxArena, BYTES, HEADER_BYTES + Math.max(mtuBytes, localMtuBytes ?? 0));
  checkArray('rxPackets', port.rxPackets, WORDS, RX.WORDS);
  checkArray('placements', port.placements, WORDS, PLACE.WORDS);
  checkArray('txPackets', port.txPackets, WORDS, TX.WORDS);
  checkArray('txSegments', port.txSegments, WORDS, segments * TX_SEGMENT.WORDS);
}

const BYTES = instanceOf(Uint8Array, 'a Uint8Array');
const WORDS = instanceOf(Uint32Array, 'a Uint32Array');

function checkArray(
  name: string,
  array: Uint8Array | Uint32Array,
  kind: Kind<Uint8Array | Uint32Array>,
  least: number,
): void {
  checkValue(`${name} of the packet port`, array, kind, einval);
  if (array.length >= least) return;
  throw einval(`the length of ${name} of the packet port`, array.length, `${least} at least`);
}

function isGid(gid: unknown): boolean {
  return gid instanceof Uint8Array && gid.length === 16;
}
