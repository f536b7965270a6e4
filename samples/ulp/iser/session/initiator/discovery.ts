/** Parses the answer to SendTargets (RFC 7143, appendix C). */
import { checkName, type TextPair, WireError } from '../../wire/index.js';

export interface PortalAddress {
  /** An IP address, without brackets, or a name. */
  readonly address: string;
  readonly port: number;
  readonly portalGroupTag: number | undefined;
}

export interface DiscoveredTarget {
  readonly name: string;
  /** Empty: the address that was asked. */
  readonly portals: readonly PortalAddress[];
}

/** The port that IANA has given to iSCSI. */
export const ISCSI_PORT = 3260;

const ADDRESS = /^(?:\[([^\]]+)\]|([^:,[\]]+))(?::(\d{1,5}))?(?:,(\d{1,5}))?$/;

/** @throws WireError for a name or an address that is none, or an address before any name */
export function readTargets(pairs: readonly TextPair[]): DiscoveredTarget[] {
  const targets: { name: string; portals: PortalAddress[] }[] = [];
  for (const [key, value] of pairs) {
    if (key === 'TargetName') {
      targets.push({ name: checkName(key, value), portals: [] });
    } else if (key === 'TargetAddress') {
      const target = targets.at(-1);
      if (target === undefined) throw new WireError('text', key, value, 'behind a TargetName');
      target.portals.push(readPortal(value));
    }
  }
  return targets;
}

/** @throws WireError unless it is ADDRESS[:PORT][,PORTAL-GROUP-TAG] */
export function readPortal(value: string): PortalAddress {
  const match = ADDRESS.exec(value);
  const port = match?.[3] === undefined ? ISCSI_PORT : Number(match[3]);
  if (match === null || port < 1 || port > 65_535) {
    throw new WireError('text', 'TargetAddress', value, 'ADDRESS[:PORT][,PORTAL-GROUP-TAG]');
  }
  return {
    address: match[1] ?? match[2]!,
    port,
    portalGroupTag: match[4] === undefined ? undefined : Number(match[4]),
  };
}
