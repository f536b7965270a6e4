/** The document that `dapl info --json` prints: plain data; GIDs and addresses are text. */
import type { SoftroceInspection } from 'dapl/providers/softroce';
import type { InspectedDevice, VerbsInspection } from 'dapl/providers/verbs';
import { ipFromGid } from 'dapl/spi';

export interface GidDocument {
  readonly index: number;
  readonly gid: string;
  readonly type: string;
  readonly netdev?: string;
}

export interface PortDocument {
  readonly number: number;
  readonly state: string;
  readonly physicalState: string;
  readonly linkLayer: string;
  readonly rate: string;
  readonly activeMtuBytes?: number;
  readonly umad?: string;
  readonly gids: readonly GidDocument[];
}

export interface DeviceDocument {
  readonly name: string;
  readonly nodeType: string;
  readonly nodeGuid: string;
  readonly firmware: string;
  readonly uverbs?: string;
  readonly problem?: string;
  readonly capabilities?: readonly string[];
  readonly limits?: Readonly<Record<string, number>>;
  readonly ports: readonly PortDocument[];
}

export interface ChoiceDocument {
  readonly device: string;
  readonly port: number;
  readonly gidIndex: number;
  readonly gid: string;
  readonly gidType: string;
  readonly netdev?: string;
  readonly address?: string;
  readonly reason: string;
  readonly warning?: string;
}

export interface InfoDocument {
  readonly verbs: {
    readonly problem?: string;
    readonly devices: readonly DeviceDocument[];
    readonly choice?: ChoiceDocument;
    readonly choiceProblem?: string;
    /** RLIMIT_MEMLOCK; null if unlimited. */
    readonly lockedMemoryLimitBytes: number | null;
  };
  readonly softroce: SoftroceInspection;
}

export function infoDocument(verbs: VerbsInspection, softroce: SoftroceInspection): InfoDocument {
  const { problem, choice, choiceProblem, lockedMemory } = verbs;
  const { limitBytes } = lockedMemory;
  return {
    verbs: {
      ...(problem !== undefined && { problem }),
      devices: verbs.devices.map(deviceDocument),
      ...(choice !== undefined && { choice: { ...choice, gid: ipFromGid(choice.gid) } }),
      ...(choiceProblem !== undefined && { choiceProblem }),
      lockedMemoryLimitBytes: limitBytes === Infinity ? null : limitBytes,
    },
    softroce,
  };
}

function deviceDocument(device: InspectedDevice): DeviceDocument {
  const { name, nodeType, nodeGuid, firmware, uverbs, problem, attributes, capabilities } = device;
  const mtus = device.activeMtuBytes;
  return {
    name,
    nodeType,
    nodeGuid,
    firmware,
    ...(uverbs !== undefined && { uverbs }),
    ...(problem !== undefined && { problem }),
    ...(capabilities !== undefined && { capabilities }),
    ...(attributes !== undefined && { limits: limitsOf(attributes) }),
    ports: device.ports.map((port, i) => {
      const mtu = mtus?.[i];
      const gids = port.gids.map((entry) => ({ ...entry, gid: ipFromGid(entry.gid) }));
      return { ...port, ...(mtu !== undefined && { activeMtuBytes: mtu }), gids };
    }),
  };
}

/** The attributes that are limits, by their names. */
function limitsOf(attributes: NonNullable<InspectedDevice['attributes']>): Record<string, number> {
  const numbers = Object.entries(attributes).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number',
  );
  return Object.fromEntries(numbers.filter(([name]) => name.startsWith('max')));
}
