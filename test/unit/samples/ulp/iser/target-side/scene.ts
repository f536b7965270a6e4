/**
 * A target whose transport, disk and time are the test's: what it sends is a list, a command ends
 * when the test says so.
 */
import { createHash } from 'node:crypto';

import {
  type AdvertisedBuffers,
  type Datamover,
  type DeviceCommand,
  type DeviceResult,
  type DeviceServer,
  type ManagementAnswer,
  type SequenceNumbers,
  TargetConnection,
  TargetNode,
  type TargetNodeOptions,
  type TransferTask,
} from '../../../../../../samples/ulp/iser/session/target-side/index.js';
import {
  emitText,
  type Format,
  initiatorFormats,
  parseText,
  readTargetPdu,
  type TargetPdu,
  type TextPair,
} from './formats.js';

export const TARGET = 'iqn.2026-01.org.example:disk';
export const INITIATOR = 'iqn.2026-01.org.example:someone';
export const PORTAL = '192.0.2.1:3260';
export const ISID = Uint8Array.of(0, 2, 0x3d, 0, 0, 1);
export const GOOD: DeviceResult = {
  status: 0,
  sense: new Uint8Array(0),
  residual: { kind: 'none', bytes: 0 },
  isAborted: false,
};

/** Time that stands still until the test moves it. */
export class Time {
  private nowMs = 0;
  private readonly alarms = new Set<{ at: number; run: () => void }>();

  readonly alarm = (ms: number, run: () => void): (() => void) => {
    const entry = { at: this.nowMs + ms, run };
    this.alarms.add(entry);
    return () => void this.alarms.delete(entry);
  };

  get pending(): number {
    return this.alarms.size;
  }

  pass(ms: number): void {
    const end = this.nowMs + ms;
    for (;;) {
      const due = [...this.alarms].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.alarms.delete(due);
      this.nowMs = due.at;
      due.run();
    }
    this.nowMs = end;
  }
}

/** A command that has been handed to the disk. */
export interface Executing {
  readonly command: DeviceCommand;
  end(result?: Partial<DeviceResult>): void;
  fail(error: Error): void;
}

export class Disk implements DeviceServer {
  readonly executing: Executing[] = [];
  readonly managed: string[] = [];
  readonly nexuses: string[] = [];
  /** What becomes of an aborted command: it ends at once, as a device server has to. */
  endsAborted = true;
  answer: ManagementAnswer = 'FUNCTION COMPLETE';

  execute(command: DeviceCommand): Promise<DeviceResult> {
    return new Promise((resolve, reject) => {
      const finish = (act: () => void): void => {
        const at = this.executing.findIndex((each) => each.command === command);
        if (at >= 0) this.executing.splice(at, 1);
        act();
      };
      this.executing.push({
        command,
        end: (result = {}) => finish(() => resolve({ ...GOOD, ...result })),
        fail: (error) => finish(() => reject(error)),
      });
      command.abort.signal.addEventListener('abort', () => {
        if (this.endsAborted) finish(() => resolve({ ...GOOD, isAborted: true }));
      });
    });
  }

  async manage(what: string, initiatorPort: string): Promise<ManagementAnswer> {
    this.managed.push(`${what} by ${initiatorPort}`);
    return this.answer;
  }

  nexusOpened(initiatorPort: string): void {
    this.nexuses.push(`+${initiatorPort}`);
  }

  async nexusLost(initiatorPort: string): Promise<void> {
    this.nexuses.push(`-${initiatorPort}`);
  }
}

/** A transport that keeps what it is given. */
export class Wire implements Datamover {
  readonly sent: TargetPdu[] = [];
  readonly moves: string[] = [];
  isEnabled = false;
  isTerminated = false;
  numbers: SequenceNumbers | undefined = undefined;
  segmentBytes = 0;

  sendControl(header: Uint8Array, data: Uint8Array): void {
    const bytes = new Uint8Array(header.length + data.length);
    bytes.set(header);
    bytes.set(data, header.length);
    this.sent.push(readTargetPdu(bytes));
  }

  async putData(task: TransferTask, offset: number, from: Uint8Array): Promise<void> {
    this.moves.push(`put ${task.initiatorTaskTag} ${offset} ${from.length}`);
  }

  async getData(task: TransferTask, offset: number, into: Uint8Array): Promise<void> {
    this.moves.push(`get ${task.initiatorTaskTag} ${offset} ${into.length}`);
    into.fill(0xee);
  }

  enable(_negotiated: unknown, numbers: SequenceNumbers): void {
    this.isEnabled = true;
    this.numbers = numbers;
  }

  limitSegments(bytes: number): void {
    this.segmentBytes = bytes;
  }

  terminate(): void {
    this.isTerminated = true;
  }
}

/** One initiator's connection, as the test drives it. */
export class Peer {
  readonly wire = new Wire();
  readonly connection: TargetConnection;
  cmdSn = 7;

  constructor(
    readonly scene: Scene,
    readonly isRdma = true,
  ) {
    const { node: target, time } = scene;
    const { alarm } = time;
    const how = { isRdma, portal: PORTAL, peer: 'the test' };
    this.connection = new TargetConnection({ target, mover: this.wire, alarm, ...how });
    target.enter(this.connection);
  }

  get sent(): readonly TargetPdu[] {
    return this.wire.sent;
  }

  /** What was sent last. */
  last<K extends TargetPdu['type']>(type: K): Extract<TargetPdu, { type: K }> {
    const pdu = this.sent.at(-1);
    if (pdu?.type !== type) throw new Error(`the last PDU is ${pdu?.type}, not ${type}`);
    return pdu as Extract<TargetPdu, { type: K }>;
  }

  send<K extends keyof typeof initiatorFormats>(
    type: K,
    values: object = {},
    data: Uint8Array = new Uint8Array(0),
    advertised?: AdvertisedBuffers,
  ): void {
    this.connection.receive(pduOf(type, values, data), advertised);
  }

  /** A login request with these keys, and its answer. */
  login(
    pairs: readonly TextPair[],
    values: object = { currentStage: 1, nextStage: 3, transit: true },
  ): Map<string, string> {
    const common = { isid: ISID, cmdSn: this.cmdSn, initiatorTaskTag: 1 };
    this.send('loginRequest', { ...common, ...values }, emitText(pairs));
    const answer = this.sent.at(-1);
    return new Map(answer?.type === 'loginResponse' ? parseText(answer.data) : []);
  }

  /** As open-iscsi does it, to full feature phase. */
  async logIn(pairs: readonly TextPair[] = []): Promise<Map<string, string>> {
    this.login([...NORMAL_KEYS, ...pairs]);
    await settle();
    const answer = this.last('loginResponse');
    return new Map(parseText(answer.data));
  }

  /** A command in its turn. */
  command(initiatorTaskTag: number, values: object = {}, data?: Uint8Array): void {
    const cmdSn = this.cmdSn++;
    const common = { initiatorTaskTag, cmdSn, attribute: 1, final: true };
    this.send('scsiCommand', { ...common, ...values }, data);
  }
}

export class Scene {
  readonly time = new Time();
  readonly disk = new Disk();
  readonly faults: string[] = [];
  readonly failures: unknown[] = [];
  readonly node: TargetNode;
  private nextRandom = 1;

  constructor(options: Partial<TargetNodeOptions> = {}) {
    this.node = new TargetNode({
      name: TARGET,
      device: this.disk,
      secrets: {
        md5: (bytes) => createHash('md5').update(bytes).digest(),
        random: (bytes) => Uint8Array.from({ length: bytes }, () => this.nextRandom++ & 0xff),
      },
      commandDepth: 4,
      maxSessions: 3,
      keepAliveMs: 0,
      transferTimeoutMs: 3000,
      wishes: { rdma: { ...WISHES, RDMAExtensions: 'Yes' }, tcp: WISHES },
      onFault: (_connection, { message }) => this.faults.push(message),
      onFailure: (error) => this.failures.push(error),
      ...options,
    });
    this.node.addPortal(PORTAL, true);
  }
}

const WISHES = {
  ImmediateData: 'Yes',
  InitialR2T: 'Yes',
  MaxBurstLength: '65536',
  FirstBurstLength: '4096',
  MaxRecvDataSegmentLength: '32768',
  DefaultTime2Wait: '0',
} as const;

export const NORMAL_KEYS: readonly TextPair[] = [
  ['InitiatorName', INITIATOR],
  ['InitiatorAlias', 'someone'],
  ['TargetName', TARGET],
  ['SessionType', 'Normal'],
  ['DefaultTime2Wait', '2'],
  ['DefaultTime2Retain', '0'],
  ['IFMarker', 'No'],
  ['OFMarker', 'No'],
  ['ErrorRecoveryLevel', '0'],
  ['InitialR2T', 'No'],
  ['ImmediateData', 'Yes'],
  ['MaxBurstLength', '16776192'],
  ['FirstBurstLength', '262144'],
  ['MaxOutstandingR2T', '1'],
  ['MaxConnections', '1'],
  ['DataPDUInOrder', 'Yes'],
  ['DataSequenceInOrder', 'Yes'],
  ['InitiatorRecvDataSegmentLength', '262144'],
  ['TargetRecvDataSegmentLength', '8192'],
  ['RDMAExtensions', 'Yes'],
];

export const DISCOVERY_KEYS: readonly TextPair[] = [
  ['InitiatorName', INITIATOR],
  ['SessionType', 'Discovery'],
  ['HeaderDigest', 'None'],
  ['DataDigest', 'None'],
  ['MaxRecvDataSegmentLength', '8192'],
];

/** The bytes of a PDU of an initiator; values that its format has no field for are left out. */
export function pduOf<K extends keyof typeof initiatorFormats>(
  type: K,
  values: object = {},
  data: Uint8Array = new Uint8Array(0),
): Uint8Array {
  const bytes = new Uint8Array(48 + data.length);
  const format = initiatorFormats[type] as unknown as Format<never>;
  const fields = format.record(format.view(bytes));
  const given = Object.entries({ dataSegmentLength: data.length, ...values });
  format.emit(Object.fromEntries(given.filter(([name]) => name in fields)) as never, bytes);
  bytes.set(data, 48);
  return bytes;
}

/** What has begun ends: no promise of the session waits for anything but the test. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}
