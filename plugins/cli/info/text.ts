/** The text that `dapl info` prints. The GID that would be chosen has a star. */
import type { DeviceDocument, InfoDocument, PortDocument } from './document.js';

/** Capabilities that an application may look for. Those that a device lacks are listed, too. */
const CAPABILITIES = [
  'rc',
  'uc',
  'ud',
  'atomic',
  'send-with-invalidate',
  'shared-receive-queue',
  'memory-window',
  'multicast',
  'xrc',
];

export function infoText(document: InfoDocument): string {
  return [...verbsLines(document.verbs), '', ...softroceLines(document.softroce), ''].join('\n');
}

function verbsLines(verbs: InfoDocument['verbs']): string[] {
  const { devices, choice, choiceProblem, problem, lockedMemoryLimitBytes: limit } = verbs;
  const locked = limit === null ? 'unlimited' : `${limit / 1024} KiB`;
  return [
    'verbs: devices through libibverbs',
    ...(problem === undefined ? [] : [`  cannot be used: ${problem}`]),
    ...devices.flatMap((device) => deviceLines(device, choice)),
    ...(choice === undefined ? [] : [`  chosen: ${choice.reason}`]),
    ...(choice?.address === undefined ? [] : [`  address: ${choice.address}`]),
    ...(choice?.warning === undefined ? [] : [`  warning: ${choice.warning}`]),
    ...(choiceProblem === undefined ? [] : [`  none would be chosen: ${choiceProblem}`]),
    `  locked memory: ${locked} (RLIMIT_MEMLOCK, "ulimit -l")`,
  ];
}

type Choice = InfoDocument['verbs']['choice'];

function deviceLines(device: DeviceDocument, choice: Choice): string[] {
  const { name, nodeType, nodeGuid, firmware, uverbs, problem, capabilities, ports } = device;
  const facts = [
    nodeType === 'RNIC' ? 'iWARP' : undefined,
    firmware === '' ? undefined : `firmware ${firmware}`,
    nodeGuid === '' ? undefined : `GUID ${nodeGuid}`,
    uverbs === undefined ? 'no uverbs' : `/dev/infiniband/${uverbs}`,
  ].filter((fact) => fact !== undefined);
  return [
    `  ${name}  ${facts.join(', ')}`,
    ...(problem === undefined ? [] : [`    does not open: ${problem}`]),
    ...(capabilities === undefined ? [] : capabilityLines(capabilities)),
    ...ports.flatMap((port) => portLines(name, port, choice)),
  ];
}

function capabilityLines(capabilities: readonly string[]): string[] {
  const lacking = CAPABILITIES.filter((name) => !capabilities.includes(name));
  const lacks = lacking.length === 0 ? '' : `; lacks ${lacking.join(', ')}`;
  return [`    can ${capabilities.join(', ')}${lacks}`];
}

function portLines(device: string, port: PortDocument, choice: Choice): string[] {
  const { number, state, physicalState, linkLayer, rate, activeMtuBytes, umad, gids } = port;
  const facts = [
    `${state} (${physicalState})`,
    linkLayer,
    rate === '' ? undefined : rate,
    activeMtuBytes === undefined ? undefined : `MTU ${activeMtuBytes}`,
    umad,
  ].filter((fact) => fact !== undefined);
  const isHere = choice?.device === device && choice.port === number;
  const rows = gids.map(({ index, gid, type, netdev = '' }) => [
    isHere && choice.gidIndex === index ? '*' : ' ',
    `GID ${index}`,
    type,
    gid,
    netdev,
  ]);
  return [`    port ${number}  ${facts.join(', ')}`, ...columns(rows).map((line) => `    ${line}`)];
}

function softroceLines(softroce: InfoDocument['softroce']): string[] {
  const { port, portProblem, udpPort, addresses, preferred } = softroce;
  const how = port === 'native' ? 'the native port' : `node:dgram, which is slower: ${portProblem}`;
  const rows = addresses.map(({ address, interface: name, pathMtuBytes, problem, isShared }) => [
    address === preferred ? '*' : ' ',
    address,
    name,
    pathMtuBytes === undefined ? '' : `MTU ${pathMtuBytes}`,
    isShared === true ? 'shared by other programs: shared: true joins them' : (problem ?? ''),
  ]);
  return [
    `softroce: RoCEv2 in user space over UDP ${udpPort}, by ${how}`,
    ...columns(rows).map((line) => `  ${line}`),
    ...(addresses.length === 0 ? ['  this machine has no address'] : []),
  ];
}

/** Formats rows of cells as lines, each column as wide as its widest cell. */
function columns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? 0, cell.length)));
  }
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
