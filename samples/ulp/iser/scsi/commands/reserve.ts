/** PERSISTENT RESERVE IN and OUT (SPC-4 6.15, 6.16), RESERVE(6) and RELEASE(6) (SPC-2). */
import { ScsiStatus } from '../common/command.js';
import { ScsiError } from '../common/scsi-error.js';
import type { Consequences } from '../reservations/persistent.js';
import {
  emitTransportId,
  isReservationType,
  readTransportId,
  registrantsHold,
  ReservationType,
} from '../reservations/types.js';
import type { Task } from '../unit/task.js';
import { type CommandRow, usage } from './row.js';

const conflict = (): ScsiError => ScsiError.withStatus(ScsiStatus.RESERVATION_CONFLICT);

/** In front of keys, reservations and full status: PRgeneration and the length of what follows. */
function withGeneration({ unit }: Task, content: Uint8Array): Uint8Array {
  const data = Buffer.concat([new Uint8Array(8), content]);
  data.writeUInt32BE(unit.reservations.generation, 0);
  data.writeUInt32BE(content.length, 4);
  return data;
}

function readKeys(task: Task): Uint8Array {
  const keys = [...task.unit.reservations.registrations.values()];
  const content = new DataView(new ArrayBuffer(8 * keys.length));
  keys.forEach((key, i) => content.setBigUint64(8 * i, key));
  return withGeneration(task, new Uint8Array(content.buffer));
}

function readReservation(task: Task): Uint8Array {
  const { current, registrations } = task.unit.reservations;
  if (current === undefined) return withGeneration(task, new Uint8Array());
  const content = new DataView(new ArrayBuffer(16));
  const key = registrantsHold(current.type) ? 0n : (registrations.get(current.holder) ?? 0n);
  content.setBigUint64(0, key);
  // SCOPE 0: the logical unit.
  content.setUint8(13, current.type);
  return withGeneration(task, new Uint8Array(content.buffer));
}

const Capability = { SIP_C: 0x08, ATP_C: 0x04, TMV: 0x80 } as const;

/** Registrations of other ports and of all target ports; none that survives a loss of power. */
function reportCapabilities(): Uint8Array {
  const data = new DataView(new ArrayBuffer(8));
  data.setUint16(0, 8);
  data.setUint8(2, Capability.SIP_C | Capability.ATP_C);
  data.setUint8(3, Capability.TMV);
  // Byte 4 has the types up to 7 as bits, byte 5 bit 0 is type 8.
  const types = Object.values(ReservationType).reduce((mask, type) => mask | (1 << type), 0);
  data.setUint8(4, types & 0xff);
  data.setUint8(5, types >> 8);
  return new Uint8Array(data.buffer);
}

const HOLDS = 0x01;

function readFullStatus(task: Task): Uint8Array {
  const { reservations } = task.unit;
  const descriptors = [...reservations.registrations].map(([nexus, key]) => {
    const id = emitTransportId(nexus);
    const descriptor = Buffer.concat([new Uint8Array(24), id]);
    descriptor.writeBigUInt64BE(key, 0);
    if (reservations.holds(nexus)) {
      descriptor[12] = HOLDS;
      descriptor[13] = reservations.current!.type;
    }
    descriptor.writeUInt16BE(1, 18);
    descriptor.writeUInt32BE(id.length, 20);
    return descriptor;
  });
  return withGeneration(task, Buffer.concat(descriptors));
}

const IN_ACTIONS: readonly (readonly [name: string, action: (task: Task) => Uint8Array])[] = [
  ['READ KEYS', readKeys],
  ['READ RESERVATION', readReservation],
  ['REPORT CAPABILITIES', reportCapabilities],
  ['READ FULL STATUS', readFullStatus],
];

/** Parameter list of PERSISTENT RESERVE OUT (SPC-4 table 203). */
interface OutParameters {
  readonly key: bigint;
  readonly actionKey: bigint;
  /** TransportIDs of SPEC_I_PT. */
  readonly others: readonly string[];
}

const List = { BYTES: 24, SPEC_I_PT: 0x08, ALL_TG_PT: 0x04, APTPL: 0x01 } as const;

async function parametersOf(task: Task, takesOthers: boolean): Promise<OutParameters> {
  const length = task.cdb.getUint32(5);
  if (length < List.BYTES || length > MAX_LIST_BYTES) {
    throw ScsiError.check('PARAMETER_LIST_LENGTH_ERROR');
  }
  const list = await task.gather(length);
  const view = new DataView(list.buffer);
  const flags = list[20]!;
  if ((flags & List.APTPL) !== 0) throw ScsiError.listField(20);
  const specifies = (flags & List.SPEC_I_PT) !== 0;
  if (specifies && !takesOthers) throw ScsiError.listField(20);
  if (!specifies && length !== List.BYTES) throw ScsiError.check('PARAMETER_LIST_LENGTH_ERROR');
  return {
    key: view.getBigUint64(0),
    actionKey: view.getBigUint64(8),
    others: specifies ? transportIds(list) : [],
  };
}

const MAX_LIST_BYTES = 1 << 16;

function transportIds(list: Uint8Array): string[] {
  if (list.length < List.BYTES + 4) throw ScsiError.check('PARAMETER_LIST_LENGTH_ERROR');
  const end = List.BYTES + 4 + new DataView(list.buffer).getUint32(List.BYTES);
  if (end > list.length) throw ScsiError.check('PARAMETER_LIST_LENGTH_ERROR');
  const ports: string[] = [];
  for (let at = List.BYTES + 4; at < end;) {
    const id = readTransportId(list.subarray(at, end));
    if (id === undefined) throw ScsiError.listField(at);
    ports.push(id.initiatorPort);
    at += id.lengthBytes;
  }
  return ports;
}

/** The TYPE of the CDB. @throws ScsiError for a type or a scope that is not there */
function typeOf({ cdb }: Task): ReservationType {
  const type = cdb.getUint8(2);
  if (!isReservationType(type)) throw ScsiError.cdbField(2);
  return type;
}

function settle({ unit }: Task, outcome: Consequences | 'conflict'): Consequences {
  if (outcome === 'conflict') throw conflict();
  for (const [nexus, condition] of outcome.attentions) unit.attentions.raise(nexus, condition);
  return outcome;
}

async function register(task: Task, ignoresKey: boolean): Promise<void> {
  const { unit, nexus } = task;
  const { key, actionKey, others } = await parametersOf(task, !ignoresKey);
  const { reservations } = unit;
  const isNew = actionKey !== 0n && !reservations.registrations.has(nexus);
  const wanted = (isNew ? 1 : 0) + others.length;
  if (wanted > reservations.room) {
    throw ScsiError.check('INSUFFICIENT_REGISTRATION_RESOURCES');
  }
  // SPC-4 5.13.7: a nexus that is registered cannot register others.
  if (others.length > 0 && !isNew) throw conflict();
  if (others.some((other) => reservations.registrations.has(other))) throw conflict();
  settle(
    task,
    ignoresKey
      ? reservations.registerAnyway(nexus, actionKey)
      : reservations.register(nexus, key, actionKey),
  );
  for (const other of others) reservations.registerAnyway(other, actionKey);
}

async function reserve(task: Task): Promise<void> {
  const type = typeOf(task);
  const { key } = await parametersOf(task, false);
  settle(task, task.unit.reservations.reserve(task.nexus, key, type));
}

async function release(task: Task): Promise<void> {
  const type = typeOf(task);
  const { key } = await parametersOf(task, false);
  const outcome = task.unit.reservations.release(task.nexus, key, type);
  if (outcome === 'wrong type') throw ScsiError.check('INVALID_RELEASE_OF_PERSISTENT_RESERVATION');
  settle(task, outcome);
}

async function clear(task: Task): Promise<void> {
  const { key } = await parametersOf(task, false);
  settle(task, task.unit.reservations.clear(task.nexus, key));
}

async function preempt(task: Task, aborts: boolean): Promise<void> {
  const { unit, nexus, cdb } = task;
  const code = cdb.getUint8(2);
  const type = isReservationType(code) ? code : undefined;
  const { key, actionKey } = await parametersOf(task, false);
  const outcome = unit.reservations.preempt(nexus, key, actionKey, type);
  if (outcome === 'no key') throw ScsiError.listField(8);
  if (outcome === 'no type') throw ScsiError.cdbField(2);
  const { preempted } = settle(task, outcome);
  if (aborts) await unit.tasks.abort(nexus, (other) => preempted.includes(other));
}

const Move = { UNREG: 0x02, LIST_BYTES: 24 } as const;

async function registerAndMove(task: Task): Promise<void> {
  const { unit, nexus, cdb } = task;
  const length = cdb.getUint32(5);
  if (length < Move.LIST_BYTES || length > MAX_LIST_BYTES) {
    throw ScsiError.check('PARAMETER_LIST_LENGTH_ERROR');
  }
  const list = await task.gather(length);
  const view = new DataView(list.buffer);
  const flags = list[17]!;
  if ((flags & List.APTPL) !== 0) throw ScsiError.listField(17);
  // The one target port there is.
  if (view.getUint16(18) !== 1) throw ScsiError.listField(18);
  const id = readTransportId(list.subarray(Move.LIST_BYTES));
  if (id === undefined || view.getUint32(20) !== id.lengthBytes) throw ScsiError.listField(24);
  const outcome = unit.reservations.registerAndMove(nexus, view.getBigUint64(0), {
    nexus: id.initiatorPort,
    key: view.getBigUint64(8),
    unregister: (flags & Move.UNREG) !== 0,
  });
  if (outcome === 'no key') throw ScsiError.listField(8);
  if (outcome === 'same nexus') throw ScsiError.listField(24);
  settle(task, outcome);
}

const OUT_ACTIONS: readonly (readonly [name: string, run: (task: Task) => Promise<void>])[] = [
  ['REGISTER', (task) => register(task, false)],
  ['RESERVE', reserve],
  ['RELEASE', release],
  ['CLEAR', clear],
  ['PREEMPT', (task) => preempt(task, false)],
  ['PREEMPT AND ABORT', (task) => preempt(task, true)],
  ['REGISTER AND IGNORE EXISTING KEY', (task) => register(task, true)],
  ['REGISTER AND MOVE', registerAndMove],
];

/** SPC-2 reservations and persistent ones exclude each other (SPC-4 5.13.3). */
async function reserve6({ unit, nexus }: Task): Promise<void> {
  if (unit.reservations.registrations.size > 0) throw conflict();
  unit.reservedBy = nexus;
}

/** Releases the nexus' own reservation. It leaves that of another nexus, which is no error. */
async function release6({ unit, nexus }: Task): Promise<void> {
  if (unit.reservations.registrations.size > 0) throw conflict();
  if (unit.reservedBy === nexus) unit.reservedBy = undefined;
}

const hex = (value: number): string => value.toString(16).padStart(2, '0');

export const RESERVATION_COMMANDS: readonly CommandRow[] = [
  ...IN_ACTIONS.map(([name, action], serviceAction): CommandRow => ({
    name: `PERSISTENT RESERVE IN ${name}`,
    opcode: 0x5e,
    serviceAction,
    usage: usage(`5e ${hex(serviceAction)} 00 00 00 00 00 ff ff 00`),
    access: 'inspect',
    runsWhileStopped: true,
    run: (task) => task.respond(action(task), task.cdb.getUint16(7)),
  })),
  ...OUT_ACTIONS.map(([name, run], serviceAction): CommandRow => ({
    name: `PERSISTENT RESERVE OUT ${name}`,
    opcode: 0x5f,
    serviceAction,
    usage: usage(`5f ${hex(serviceAction)} ff 00 00 ff ff ff ff 00`),
    access: 'inspect',
    runsWhileStopped: true,
    run,
  })),
  {
    name: 'RESERVE(6)',
    opcode: 0x16,
    usage: usage('16 00 00 00 00 00'),
    access: 'inspect',
    run: reserve6,
  },
  {
    name: 'RELEASE(6)',
    opcode: 0x17,
    usage: usage('17 00 00 00 00 00'),
    access: 'exempt',
    run: release6,
  },
];
