/** `dapl info`: the devices of this machine, and those that providers would choose. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { inspectSoftroce } from 'dapl/providers/softroce';
import { inspectVerbs, type VerbsOptions } from 'dapl/providers/verbs';
import {
  type DeviceDocument,
  infoDocument,
  type InfoDocument,
  type PortDocument,
} from '../info/document.js';

interface Given {
  readonly device?: string;
  readonly address?: string;
  readonly port?: number;
  readonly gidIndex?: number;
  readonly json?: boolean;
}

export function infoCommand(): Command {
  return new Command('info')
    .description('list RDMA devices, ports and GIDs, and those that would be chosen')
    .addOption(
      new Option('-d, --device <name>', 'choose this device, or interface').conflicts('address'),
    )
    .option('-a, --address <ip>', 'choose by an address: a local one, or a peer that is routed to')
    .option('-p, --port <number>', 'port of the device', number(1))
    .option('-g, --gid-index <number>', "place in the port's GID table", number(0))
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async ({ json = false, ...options }: Given) => {
      process.exitCode = await info(options, json);
    });
}

const EXAMPLES = `
Examples:
  dapl info                    all devices, and the one that an application gets by default
  dapl info -a 192.168.1.20    the device and GID that reach this peer, and why
  dapl info --json | jq .verbs.choice

The exit code is 1 if the requested device or address cannot be used.`;

/** @returns the exit code */
async function info(options: VerbsOptions, json: boolean): Promise<number> {
  const [verbs, softroce] = await Promise.all([inspectVerbs(options), inspectSoftroce()]);
  const document = infoDocument(verbs, softroce);
  process.stdout.write(json ? `${JSON.stringify(document, null, 2)}\n` : infoText(document));
  const isAsked = Object.keys(options).length > 0;
  return isAsked && verbs.choice === undefined ? 1 : 0;
}

function number(min: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= 255) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to 255.`);
  };
}

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
