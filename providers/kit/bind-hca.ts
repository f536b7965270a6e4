/** Bindings of a provider over a packet port: the port, its node, and the modules over them. */
import {
  CM,
  type Clock,
  MAD,
  PACKET_PORT,
  type PacketPort,
  part,
  type Registrar,
  type Token,
  XRC,
} from '../../core/spi/index.js';
import { cm } from '../../plugins/cm/index.js';
import { mad } from '../../plugins/mad/index.js';
import { xrc } from '../../plugins/xrc/index.js';
import { bindNode, type HostNode } from '../host/index.js';

/**
 * @param node is made of the port as it stands in the container, where a plugin may have wrapped it
 * @param clock apart from the node, so that what stands over the port may have it
 */
export function bindHca<N extends HostNode>(
  registrar: Registrar,
  port: PacketPort,
  node: Token<N>,
  makeNode: (through: PacketPort) => N,
  clock: Clock,
): void {
  registrar.bind(PACKET_PORT, () => port);
  registrar.bind(
    node,
    part({ through: PACKET_PORT }, ({ through }) => makeNode(through)),
  );
  bindNode(registrar, node, clock);
  registrar.bind(MAD, mad({}));
  registrar.bind(CM, cm({}));
  registrar.bind(XRC, xrc({}));
}
