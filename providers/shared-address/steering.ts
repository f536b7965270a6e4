/**
 * Chooses the process of a shared device that a packet is for, by the packet alone: as a function,
 * and as the program that the system runs for each packet (classic BPF; socket(7),
 * SO_ATTACH_REUSEPORT_CBPF). Each process has a slot, which is the top byte of its QPNs, of its
 * CM's communication and request ids, and of its MAD transaction ids. The first packets of a sender
 * name no slot; they go to one process: `home`.
 */

/** Offsets from the BTH on: BTH 12, DETH 8, MAD header 24 (IBTA 9.2, 9.3.3, 13.4.3, 12.6). */
const AT = {
  QPN_WORD: 4,
  QPN_TOP: 5,
  CLASS: 21,
  METHOD: 23,
  TRANSACTION_ID: 28,
  ATTRIBUTE: 36,
  LOCAL_COMM_ID: 44,
  REMOTE_COMM_ID: 48,
  SERVICE_ID: 52,
} as const;

const GSI_QPN = 1;
const QPN_MASK = 0xffffff;
const CM_CLASS = 0x07;
const RESPONSE_BIT = 0x80;
const REQ = 0x10;
const SIDR_REQ = 0x17;
const SIDR_REP = 0x18;

/** For no slot. */
const NOWHERE = -1;

/** The slot that a packet is for, as the program has it. @param packet from its BTH on */
export function slotOf(packet: Uint8Array, home = 0): number {
  const slot = steer(packet);
  return slot === NOWHERE ? home : slot;
}

function steer(packet: Uint8Array): number {
  const top = packet[AT.QPN_TOP];
  // Too short for the program's load: the system takes 0.
  if (top === undefined) return 0;
  if (top !== 0) return top;
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
  const has = (at: number, bytes: number): boolean => packet.length >= at + bytes;
  if (!has(AT.QPN_WORD, 4) || (view.getUint32(AT.QPN_WORD) & QPN_MASK) !== GSI_QPN) return 0;
  if (!has(AT.CLASS, 1)) return 0;
  if (packet[AT.CLASS] !== CM_CLASS) {
    if (!has(AT.METHOD, 1)) return 0;
    if (((packet[AT.METHOD] ?? 0) & RESPONSE_BIT) === 0) return NOWHERE;
    return packet[AT.TRANSACTION_ID] ?? 0;
  }
  if (!has(AT.ATTRIBUTE, 2)) return 0;
  const attribute = view.getUint16(AT.ATTRIBUTE);
  if (attribute === REQ || attribute === SIDR_REQ) return NOWHERE;
  if (attribute === SIDR_REP) return packet[AT.LOCAL_COMM_ID] ?? 0;
  if (!has(AT.REMOTE_COMM_ID, 4)) return 0;
  // An answer to a request that its sender could not read: it has the request's transaction id.
  if (view.getUint32(AT.REMOTE_COMM_ID) === 0) return packet[AT.TRANSACTION_ID] ?? 0;
  return packet[AT.REMOTE_COMM_ID] ?? 0;
}

/** Code, jump if true, jump if false, operand (linux/filter.h). */
export type Instruction = readonly [code: number, jt: number, jf: number, k: number];

const LOAD_BYTE = 0x30;
const LOAD_HALF = 0x28;
const LOAD_WORD = 0x20;
const AND = 0x54;
const JUMP_EQUAL = 0x15;
const JUMP_SET = 0x45;
const RETURN_A = 0x16;
const RETURN = 0x06;

const SOURCE: readonly (readonly [
  code: number,
  k: number,
  jt?: string,
  jf?: string,
  label?: string,
])[] = [
  [LOAD_BYTE, AT.QPN_TOP],
  [JUMP_EQUAL, 0, 'own', 'slot'],
  [LOAD_WORD, AT.QPN_WORD, '', '', 'own'],
  [AND, QPN_MASK],
  [JUMP_EQUAL, GSI_QPN, 'management', 'first'],
  [LOAD_BYTE, AT.CLASS, '', '', 'management'],
  [JUMP_EQUAL, CM_CLASS, 'cm', 'other'],
  [LOAD_BYTE, AT.METHOD, '', '', 'other'],
  [JUMP_SET, RESPONSE_BIT, 'transaction', 'home'],
  [LOAD_HALF, AT.ATTRIBUTE, '', '', 'cm'],
  [JUMP_EQUAL, REQ, 'home', ''],
  [JUMP_EQUAL, SIDR_REQ, 'home', ''],
  [JUMP_EQUAL, SIDR_REP, 'asker', ''],
  [LOAD_WORD, AT.REMOTE_COMM_ID],
  [JUMP_EQUAL, 0, 'transaction', ''],
  [LOAD_BYTE, AT.REMOTE_COMM_ID],
  [RETURN_A, 0, '', '', 'slot'],
  [LOAD_BYTE, AT.LOCAL_COMM_ID, '', '', 'asker'],
  [RETURN_A, 0],
  [LOAD_BYTE, AT.TRANSACTION_ID, '', '', 'transaction'],
  [RETURN_A, 0],
  [RETURN, 0, '', '', 'first'],
];

/** @param home the slot that takes what is for none: 0 to 254 */
export function steeringProgram(home = 0): Instruction[] {
  const lines = [...SOURCE, [RETURN, home, '', '', 'home'] as const];
  const lineOf = (label: string): number => lines.findIndex(([, , , , name]) => name === label);
  return lines.map(([code, k, jt = '', jf = ''], i) => {
    const jump = (label: string): number => (label === '' ? 0 : lineOf(label) - i - 1);
    return [code, jump(jt), jump(jf), k];
  });
}

/** Lookup of the process for packets that name no slot. */
export interface Directory {
  listenerOf(serviceId: bigint): number | undefined;
  classOwnerOf(mgmtClass: number): number | undefined;
}

/**
 * The slot whose process a packet is for.
 * @param self takes what no process has asked for: it answers that there is no such service
 */
export function ownerOf(packet: Uint8Array, directory: Directory, self: number): number {
  const slot = steer(packet);
  if (slot !== NOWHERE) return slot;
  const mgmtClass = packet[AT.CLASS] ?? 0;
  if (mgmtClass !== CM_CLASS) return directory.classOwnerOf(mgmtClass) ?? self;
  if (packet.length < AT.SERVICE_ID + 8) return self;
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
  return directory.listenerOf(view.getBigUint64(AT.SERVICE_ID)) ?? self;
}
