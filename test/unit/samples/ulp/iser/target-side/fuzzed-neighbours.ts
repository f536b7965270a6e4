/**
 * A session that behaves beside sessions that do not, over simulated TCP and in virtual time: each
 * of its commands is answered before any stall of the others is noticed.
 */
import assert from 'node:assert/strict';

import { SeededRandom } from '../../../../../../plugins/faults/grammar/seeded-random.js';
import { BufferPool, MemoryBackend } from '../../../../../../samples/ulp/block/index.js';
import { LogicalUnit, ScsiTarget } from '../../../../../../samples/ulp/iser/scsi/index.js';
import {
  type Datamover,
  type Negotiated,
  ProtocolFault,
  type SequenceNumbers,
  TargetConnection,
  TcpTransfers,
  type TransferTask,
} from '../../../../../../samples/ulp/iser/session/target-side/index.js';
import { hostileCdb } from '../scsi/hostile.js';
import {
  emitText,
  initiatorFormats,
  readInitiatorPdu,
  readTargetPdu,
  serialDistance,
  type TargetPdu,
  TASK_FUNCTION,
  WireError,
} from './formats.js';
import { INITIATOR, NORMAL_KEYS, PORTAL, pduOf, Scene, TARGET } from './scene.js';

/** Shorter than any stall takes to be noticed. */
export const DEADLINE_MS = 2000;
const STEP_MS = 100;
const STEPS = 600;
const FUZZERS = 5;
const BLOCK_BYTES = 512;
const DISK_BLOCKS = 2048;
const CHUNK_BYTES = 16_384;
const CHUNKS = 32;
/** Numbers near it are numbers, too. */
const FIRST = 100;
const NO_DATA = new Uint8Array(0);
const LUN_0 = new Uint8Array(8);
const OVER_ISER = /^(RDMA|Initiator|Target)(Extensions|RecvData)/;

type R2t = Extract<TargetPdu, { type: 'r2t' }>['header'];
type Sent = (error?: Error | null) => void;

/** The target's end of a connection. What the initiator does not read stays unsent. */
class SimulatedTcp implements Datamover {
  readonly connection: TargetConnection;
  isRead = true;
  isOver = false;
  private transfers: TcpTransfers | undefined = undefined;
  private readonly unsent: Sent[] = [];

  constructor(
    private readonly scene: Scene,
    peer: string,
    private readonly deliver: (pdu: TargetPdu) => void,
  ) {
    const how = { isRdma: false, portal: PORTAL, peer };
    const { node: target, time } = scene;
    this.connection = new TargetConnection({ target, mover: this, alarm: time.alarm, ...how });
    target.enter(this.connection);
  }

  receive(bytes: Uint8Array): void {
    if (this.isOver) return;
    try {
      if (!this.takeDataOut(bytes)) this.connection.receive(bytes);
    } catch (error) {
      if (!(error instanceof ProtocolFault || error instanceof WireError)) throw error;
      this.connection.receiveFault(error, bytes);
      if (error instanceof WireError) this.connection.close(error.message);
    }
  }

  /** The initiator reads what waits. */
  resume(): void {
    this.isRead = true;
    for (const sent of this.unsent.splice(0)) sent();
  }

  end(why: string): void {
    if (this.isOver) return;
    this.isOver = true;
    this.connection.transportEnded(why);
    this.transfers?.end(new Error(why));
    for (const sent of this.unsent.splice(0)) sent(new Error(why));
  }

  sendControl(header: Uint8Array, data: Uint8Array): void {
    this.send(header, data);
  }

  putData(task: TransferTask, offset: number, from: Uint8Array): Promise<void> {
    return this.transfers!.putData(task, offset, from);
  }

  getData(task: TransferTask, offset: number, into: Uint8Array): Promise<void> {
    return this.transfers!.getData(task, offset, into);
  }

  enable(negotiated: Negotiated, numbers: SequenceNumbers): void {
    this.transfers = new TcpTransfers({
      ...{ negotiated, numbers, alarm: this.scene.time.alarm },
      send: (header, data, sent) => this.send(header, data, sent),
      timeoutMs: this.scene.node.options.transferTimeoutMs,
      stalled: () => this.connection.stalled(),
    });
  }

  limitSegments(bytes: number): void {
    this.transfers?.limitSegments(bytes);
  }

  terminate(): void {
    queueMicrotask(() => this.end('the session has ended'));
  }

  private send(header: Uint8Array, data: Uint8Array, sent?: Sent): void {
    if (this.isOver) return sent?.(new Error('the connection is over'));
    const pdu = readTargetPdu(Buffer.concat([header, data]));
    queueMicrotask(() => {
      if (this.isOver || this.isRead) sent?.();
      else if (sent !== undefined) this.unsent.push(sent);
      this.deliver(pdu);
    });
  }

  private takeDataOut(bytes: Uint8Array): boolean {
    if ((bytes[0]! & 0x3f) !== 5 || this.transfers === undefined) return false;
    const pdu = readInitiatorPdu(bytes);
    if (pdu.type !== 'dataOut' || pdu.header.targetTransferTag === 0xffff_ffff) return false;
    this.transfers.dataOut(pdu);
    return true;
  }
}

/** An initiator with a connection, whose numbers are right unless it chooses otherwise. */
abstract class Initiator {
  protected wire: SimulatedTcp;
  protected cmdSn = FIRST;
  protected maxCmdSn = 0;
  protected tag = FIRST;

  constructor(
    protected readonly scene: Scene,
    protected readonly random: SeededRandom,
    protected readonly name: string,
  ) {
    this.wire = this.connect();
  }

  protected abstract take(pdu: TargetPdu): void;

  protected connect(): SimulatedTcp {
    this.cmdSn = FIRST;
    this.maxCmdSn = 0;
    const wire: SimulatedTcp = new SimulatedTcp(this.scene, `${this.name}:1`, (pdu) => {
      if (wire !== this.wire) return;
      if (serialDistance(pdu.header.maxCmdSn, this.maxCmdSn) > 0) {
        this.maxCmdSn = pdu.header.maxCmdSn;
      }
      this.take(pdu);
    });
    return wire;
  }

  protected send<K extends keyof typeof initiatorFormats>(
    type: K,
    values: object,
    data: Uint8Array = NO_DATA,
  ): void {
    this.wire.receive(pduOf(type, values, data));
  }

  logIn(isid = 1): void {
    const keys = NORMAL_KEYS.filter(([key]) => !OVER_ISER.test(key)).map(
      ([key, value]) => [key, key === 'InitiatorName' ? this.name : value] as const,
    );
    const stages = { currentStage: 1, nextStage: 3, transit: true };
    const values = { ...stages, isid: Uint8Array.of(0x80, 0, 0, 0, 0, isid), cmdSn: this.cmdSn };
    const more = [['MaxRecvDataSegmentLength', '32768']] as const;
    this.send('loginRequest', { ...values, initiatorTaskTag: 0 }, emitText([...keys, ...more]));
  }
}

/** READs, WRITEs and pings, with an eye on the clock. */
class Innocent extends Initiator {
  answers = 0;
  readonly statuses = new Map<number, number>();
  private readonly waiting = new Map<number, { readonly what: string; readonly sinceMs: number }>();
  private readonly r2ts: R2t[] = [];
  private nowMs = 0;

  step(nowMs: number): void {
    this.nowMs = nowMs;
    this.answerR2ts();
    assert.equal(this.wire.isOver, false, 'the session of the innocent goes on');
    for (const [tag, { what, sinceMs }] of this.waiting) {
      const waitedMs = nowMs - sinceMs;
      assert.ok(waitedMs <= DEADLINE_MS, `${what}, tag ${tag}: no answer in ${waitedMs} ms`);
    }
    while (this.waiting.size < 3 && this.maxCmdSn >= this.cmdSn) this.command();
  }

  /** Answers what was asked in the step before: others have come between. */
  answerR2ts(): void {
    for (const asked of this.r2ts.splice(0)) this.answerR2t(asked);
  }

  get isIdle(): boolean {
    return this.waiting.size === 0;
  }

  protected take(pdu: TargetPdu): void {
    const { type, header } = pdu;
    if (type === 'r2t') this.r2ts.push(header);
    else if (type === 'reject') assert.fail(`the innocent is rejected: ${header.reason}`);
    else if (type === 'scsiResponse' || type === 'nopIn') this.ended(pdu);
  }

  private ended({ header, type }: TargetPdu): void {
    if (!this.waiting.delete(header.initiatorTaskTag)) return;
    this.answers++;
    const status = type === 'scsiResponse' ? (header as { status: number }).status : 0;
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
  }

  private answerR2t(header: R2t): void {
    const { initiatorTaskTag, targetTransferTag, bufferOffset } = header;
    const bytes = header.desiredDataTransferLength;
    for (let at = 0, dataSn = 0; at < bytes; at += CHUNK_BYTES, dataSn++) {
      const end = Math.min(at + CHUNK_BYTES, bytes);
      const place = { bufferOffset: bufferOffset + at, dataSn, final: end === bytes };
      const tags = { initiatorTaskTag, targetTransferTag };
      this.send('dataOut', { ...tags, ...place }, new Uint8Array(end - at));
    }
  }

  private command(): void {
    const initiatorTaskTag = this.tag++;
    const what = this.random.pick(['READ', 'WRITE', 'NOP'] as const);
    this.waiting.set(initiatorTaskTag, { what, sinceMs: this.nowMs });
    const numbers = { initiatorTaskTag, cmdSn: this.cmdSn++ };
    if (what === 'NOP') return this.send('nopOut', numbers);
    const blocks = this.random.pick([1, 8, 128]);
    const cdb = blocksCdb(what, this.random.below(DISK_BLOCKS - blocks), blocks);
    const way = { [what.toLowerCase()]: true, expectedDataTransferLength: blocks * BLOCK_BYTES };
    this.send('scsiCommand', { ...numbers, ...way, cdb, attribute: 1, final: true });
  }
}

function blocksCdb(what: 'READ' | 'WRITE', lba: number, blocks: number): Uint8Array {
  const cdb = new Uint8Array(16);
  cdb[0] = what === 'READ' ? 0x28 : 0x2a;
  new DataView(cdb.buffer).setUint32(2, lba);
  new DataView(cdb.buffer).setUint16(7, blocks);
  return cdb;
}

/** Functions that end all commands of their nexus. */
const ENDS_ALL: ReadonlySet<number> = new Set([
  TASK_FUNCTION.ABORT_TASK_SET,
  TASK_FUNCTION.CLEAR_TASK_SET,
  TASK_FUNCTION.LOGICAL_UNIT_RESET,
  TASK_FUNCTION.TARGET_WARM_RESET,
  TASK_FUNCTION.TARGET_COLD_RESET,
]);

/** Does what the seed says, and forgets what it has begun. */
class Fuzzer extends Initiator {
  readonly done = new Map<string, number>();
  private readonly r2ts: R2t[] = [];
  private readonly endings = new Set<number>();
  /** Commands up to this tag have been ended by a function that has its answer. */
  private lastEnded = 0;
  private readonly acts: readonly (readonly [weight: number, name: string, act: () => void])[] = [
    [12, 'transfer', () => this.transfer()],
    [6, 'other command', () => this.otherCommand()],
    [8, 'data', () => this.sendData()],
    [3, 'task management', () => this.manage()],
    [2, 'deaf', () => (this.wire.isRead = false)],
    [1, 'hears again', () => this.wire.resume()],
    [1, 'noise', () => this.sendNoise()],
    [1, 'reset', () => this.wire.end('reset by the peer')],
    [1, 'logout', () => this.logOut()],
    [2, 'ping', () => this.send('nopOut', this.numbers())],
    [1, 'reservation', () => this.reserve()],
  ];

  step(): void {
    if (this.wire.isOver) {
      this.wire = this.connect();
      this.r2ts.length = 0;
      this.logIn(this.random.below(2));
      return;
    }
    for (let left = this.random.below(6); left > 0 && !this.wire.isOver; left--) this.act();
  }

  leave(): void {
    this.wire.end('the test ends');
  }

  protected take(pdu: TargetPdu): void {
    const { initiatorTaskTag } = pdu.header;
    if (pdu.type === 'r2t') this.r2ts.push(pdu.header);
    else if (pdu.type === 'scsiResponse') {
      assert.ok(initiatorTaskTag > this.lastEnded, 'no response behind that of the function');
    } else if (pdu.type === 'taskManagementResponse' && this.endings.has(initiatorTaskTag)) {
      this.lastEnded = Math.max(this.lastEnded, initiatorTaskTag);
    }
  }

  private act(): void {
    let at = this.random.below(this.acts.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, name, act] of this.acts) {
      at -= weight;
      if (at >= 0) continue;
      this.done.set(name, (this.done.get(name) ?? 0) + 1);
      return act();
    }
  }

  private numbers(): { cmdSn: number; initiatorTaskTag: number; immediate: boolean } {
    const immediate = this.random.percent(20);
    const isWrong = this.random.percent(2);
    const cmdSn = isWrong ? this.random.u32() : immediate ? this.cmdSn : this.cmdSn++;
    return { cmdSn, initiatorTaskTag: this.tag++, immediate };
  }

  private command(
    cdb: Uint8Array,
    way: 'read' | 'write',
    bytes: number,
    data: Uint8Array = NO_DATA,
  ): void {
    if (this.maxCmdSn < this.cmdSn) return;
    const attribute = this.random.pick([0, 1, 1, 2, 3, 4]);
    const values = { [way]: true, expectedDataTransferLength: bytes, cdb, attribute };
    this.send('scsiCommand', { ...this.numbers(), ...values, final: true }, data);
  }

  private transfer(): void {
    const what = this.random.pick(['READ', 'WRITE'] as const);
    const blocks = this.random.pick([1, 64, 1024]);
    const bytes = blocks * BLOCK_BYTES;
    const cdb = blocksCdb(what, this.random.below(DISK_BLOCKS), blocks);
    this.command(cdb, what === 'READ' ? 'read' : 'write', bytes);
  }

  private otherCommand(): void {
    const bytes = this.random.pick([0, 24, 512, 8192]);
    const data = this.random.percent(50) ? this.random.bytes(Math.min(bytes, 512)) : NO_DATA;
    const cdb = hostileCdb(() => this.random.unit());
    if (data.length > 0) this.command(cdb, 'write', bytes, data);
    else this.command(cdb, this.random.pick(['read', 'write'] as const), bytes);
  }

  /** PERSISTENT RESERVE OUT: key 1 registers, reserves, preempts and aborts. */
  private reserve(): void {
    const list = new Uint8Array(24);
    const action = this.random.pick([0, 1, 2, 3, 4, 5, 6]);
    if (action !== 0 && action !== 6) list[7] = 1;
    list[15] = this.random.below(2);
    const cdb = new Uint8Array(16);
    cdb.set([0x5f, action, 1 + this.random.below(8), 0, 0, 0, 0, 0, list.length]);
    this.command(cdb, 'write', list.length, list);
  }

  /** A part of what was asked for, all of it, or nothing. */
  private sendData(): void {
    const asked = this.r2ts.shift();
    if (asked === undefined || this.random.percent(20)) return;
    const { initiatorTaskTag, targetTransferTag, bufferOffset } = asked;
    const whole = asked.desiredDataTransferLength;
    const isWhole = this.random.percent(70) && whole <= 32_768;
    const bytes = isWhole ? whole : 1 + this.random.below(Math.min(whole, 4096));
    const tags = { initiatorTaskTag, targetTransferTag, bufferOffset, dataSn: 0 };
    const final = (bytes === whole) !== this.random.percent(2);
    this.send('dataOut', { ...tags, final }, new Uint8Array(bytes));
  }

  private manage(): void {
    const values = {
      function: this.random.pick(Object.values(TASK_FUNCTION)),
      referencedTaskTag: this.tag - this.random.below(4),
      refCmdSn: this.cmdSn - this.random.below(4),
    };
    if (ENDS_ALL.has(values.function)) this.endings.add(this.tag);
    this.send('taskManagementRequest', { ...this.numbers(), ...values, lun: LUN_0 });
  }

  private sendNoise(): void {
    const type = this.random.pick(Object.keys(initiatorFormats) as 'nopOut'[]);
    const noise = this.random.bytes(this.random.below(64));
    const bytes = pduOf(type, this.numbers(), noise);
    for (let flips = this.random.below(4); flips > 0; flips--) {
      bytes[this.random.below(48)]! ^= 1 << this.random.below(8);
    }
    this.wire.receive(bytes.subarray(0, 48 + this.random.below(bytes.length)));
  }

  private logOut(): void {
    this.send('logoutRequest', { ...this.numbers(), immediate: true, reason: 0 });
  }
}

export interface FuzzedRun {
  /** Of the innocent, by status. */
  readonly statuses: ReadonlyMap<number, number>;
  readonly answers: number;
  /** Of the fuzzers, by name. */
  readonly acts: ReadonlyMap<string, number>;
}

/** @throws AssertionError for a command of the innocent that has no answer, or what is left */
export async function besideFuzzers(seed: number): Promise<FuzzedRun> {
  const random = new SeededRandom(seed);
  const { scene, unit, pool } = targetOf();
  const innocent = new Innocent(scene, random.fork(), INITIATOR);
  const fuzzers = Array.from(
    { length: FUZZERS },
    (_, at) => new Fuzzer(scene, random.fork(), `${INITIATOR}.fuzzer${at}`),
  );
  for (const each of [innocent, ...fuzzers]) each.logIn();
  for (let step = 0; step < STEPS; step++) {
    await turn();
    for (const fuzzer of fuzzers) fuzzer.step();
    innocent.step(step * STEP_MS);
    scene.time.pass(STEP_MS);
    assert.deepEqual(scene.failures, []);
  }
  for (const fuzzer of fuzzers) fuzzer.leave();
  for (let left = 10; left > 0; left--) {
    await turn();
    innocent.answerR2ts();
  }
  assert.ok(innocent.isIdle, 'everything is answered when the others have gone');
  assert.deepEqual([unit.tasks.size, pool.freeCount], [0, CHUNKS], 'nothing is left of them');
  assert.equal(scene.node.connectionCount, 1);
  const acts = new Map<string, number>();
  for (const { done } of fuzzers) {
    for (const [name, count] of done) acts.set(name, (acts.get(name) ?? 0) + count);
  }
  return { statuses: innocent.statuses, answers: innocent.answers, acts };
}

function targetOf(): { scene: Scene; unit: LogicalUnit; pool: BufferPool } {
  const backend = new MemoryBackend({ sizeBytes: DISK_BLOCKS * BLOCK_BYTES });
  const identity = { vendor: 'DAPL', product: 'disk', revision: '1', serial: 'disk-0' };
  const faults: unknown[] = [];
  const unit = new LogicalUnit({ backend, identity, onFault: (error) => faults.push(error) });
  const memory = new Uint8Array(CHUNKS * CHUNK_BYTES);
  const maxSessions = 2 * FUZZERS + 1;
  const pool = new BufferPool({ memory, chunkBytes: CHUNK_BYTES, borrowers: maxSessions });
  const device = new ScsiTarget({ name: TARGET, units: new Map([[0, unit]]), pool });
  return { scene: new Scene({ device, maxSessions, commandDepth: 16 }), unit, pool };
}

/** All that has begun and waits for no alarm. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
