/** Bindings of a provider over a packet port: the port, its node, and the modules over them. */
import {
  CM,
  type Clock,
  type CmModule,
  MAD,
  PACKET_PORT,
  type PacketPort,
  part,
  type Registrar,
  type Token,
  XRC,
} from '../../core/spi/index.js';
import { Cm } from '../../plugins/cm/index.js';
import { Mad } from '../../plugins/mad/index.js';
import { Xrc } from '../../plugins/xrc/index.js';
import { bindNode, type HostNode } from '../host/bind-node.js';

export interface HcaBindings<N extends HostNode> {
  readonly port: PacketPort;
  readonly node: Token<N>;
  /** Makes it of the port as it stands in the container, where a plugin may have wrapped it. */
  readonly makeNode: (through: PacketPort) => N;
  /** Apart from the node, so that what stands over the port may have it. */
  readonly clock: Clock;
  /** The device is there, and its CM. */
  readonly onOpen?: (node: N, cm: CmModule) => void;
}

export function bindHca<N extends HostNode>(
  registrar: Registrar,
  { port, node, makeNode, clock, onOpen }: HcaBindings<N>,
): void {
  registrar.bind(PACKET_PORT, () => port);
  registrar.bind(
    node,
    part({ through: PACKET_PORT }, ({ through }) => makeNode(through)),
  );
  bindNode(registrar, node, clock);
  registrar.bind(MAD, Mad);
  registrar.bind(CM, Cm);
  registrar.bind(XRC, Xrc);
  if (onOpen) registrar.onOpen(part({ node, cm: CM }, (made) => onOpen(made.node, made.cm)));
}
