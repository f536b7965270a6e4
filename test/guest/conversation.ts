// Checks the CM messages of a capture, as the dissector reads them: each connection is a
// conversation that the CM allows, its messages agree with one another, and its data starts at the
// agreed sequence numbers. IBTA 12.6 to 12.9; Linux, drivers/infiniband/core/cm.c.
import assert from 'node:assert/strict';

import { CM_ATTRIBUTE, type CmField, type CmName, type Dissection } from './tshark.js';

/** The dissector's names. */
const TITLES: Readonly<Record<CmName, string>> = {
  REQ: 'ConnectRequest',
  MRA: 'MsgRcptAck',
  REJ: 'ConnectReject',
  REP: 'ConnectReply',
  RTU: 'ReadyToUse',
  DREQ: 'DisconnectRequest',
  DREP: 'DisconnectReply',
  SIDR_REQ: 'ServiceIDResReq',
  SIDR_REP: 'ServiceIDResReqResp',
};
/**
 * First occurrences only. Either side may end what it has answered, with or without the RTU; its
 * REJ may cross the RTU, and a DREQ of the other side too, which then is answered for an id that
 * is no more.
 */
const LEGAL =
  /^REQ( MRA)?( REJ| REP( MRA)?( REJ RTU( DREQ( DREP)?)?|( RTU)?( REJ)?( DREQ( REJ)?( DREP)?)?))?$/;

const PATH_MTU_CODES = [3, 5];
const NO_LID = 0xffff;
const FIRST_QPN = 2;
/** RC responses are not in the sequence of requests: 0x0d READ response first to 0x12 atomic. */
const isRequest = (opcode: number): boolean => opcode <= 0x17 && (opcode < 0x0d || opcode > 0x12);

/** One connection, from its REQ on. */
export interface Conversation {
  readonly request: Dissection;
  reply: Dissection | undefined;
  /** All messages of it, in the order seen, repetitions included. */
  readonly messages: { readonly name: CmName; readonly packet: Dissection }[];
}

/** Names of a conversation's messages, each once, in the order of their first occurrence. */
export function sequenceOf({ messages }: Conversation): string {
  return [...new Set(messages.map(({ name }) => name))].join(' ');
}

/** The conversations of a capture, once everything in them has been found right. */
export function checkConversations(packets: readonly Dissection[]): Conversation[] {
  const byRequest = new Map<string, Conversation>();
  const byReply = new Map<string, Conversation>();
  for (const packet of packets) {
    if (packet.cmAttribute === undefined) continue;
    const name = nameOf(packet);
    const where = `frame ${packet.frame}, ${name}`;
    assert.ok(packet.info.includes(TITLES[name]), `${where}: ${packet.info}`);
    assert.equal(packet.destinationQpn, 1, where);
    if (name === 'REQ') addRequest(byRequest, packet, where);
    else if (!name.startsWith('SIDR')) addMessage(byRequest, byReply, name, packet, where);
  }
  const conversations = [...byRequest.values()];
  for (const conversation of conversations) {
    const sequence = sequenceOf(conversation);
    const where = `frame ${conversation.request.frame}`;
    assert.ok(LEGAL.test(sequence), `${where}: ${sequence} is no conversation`);
  }
  checkFirstPsns(conversations, packets);
  return conversations;
}

function nameOf({ cmAttribute, frame }: Dissection): CmName {
  const found = Object.entries(CM_ATTRIBUTE).find(([, value]) => value === cmAttribute);
  assert.ok(found !== undefined, `frame ${frame}: attribute ${cmAttribute}`);
  return found[0] as CmName;
}

function addRequest(known: Map<string, Conversation>, request: Dissection, where: string): void {
  const key = `${request.source} ${request.cm.reqCommId}`;
  const before = known.get(key);
  if (before !== undefined) {
    assert.deepEqual(request.cm, before.request.cm, `${where}: differs from the first one`);
    before.messages.push({ name: 'REQ', packet: request });
    return;
  }
  checkRequest(request, where);
  known.set(key, { request, reply: undefined, messages: [{ name: 'REQ', packet: request }] });
}

/** Field by field what rdma_cm fills in. */
function checkRequest({ source, destination, cm }: Dissection, where: string): void {
  const is = (field: CmField, expected: number | string): void => {
    const found = typeof expected === 'number' ? Number(cm[field]) : cm[field];
    assert.equal(found, expected, `${where}: ${field}`);
  };
  const isIpv4 = source.includes('.');
  is('reqServicePrefix', '0000000001');
  is('reqServiceProtocol', 6);
  is('reqServiceType', 0);
  is('reqPkey', 0xffff);
  is('reqLocalLid', NO_LID);
  is('reqMajorVersion', 0);
  is('reqIpVersion', isIpv4 ? 4 : 6);
  is(isIpv4 ? 'reqLocalGidIpv4' : 'reqLocalGid', source);
  is(isIpv4 ? 'reqRemoteGidIpv4' : 'reqRemoteGid', destination);
  is(isIpv4 ? 'reqSourceIpv4' : 'reqSourceIpv6', source);
  is(isIpv4 ? 'reqDestinationIpv4' : 'reqDestinationIpv6', destination);
  assert.ok(Number(cm.reqServicePort) > 0, `${where}: service port`);
  assert.ok(Number(cm.reqSourcePort) > 0, `${where}: source port`);
  assert.ok(Number(cm.reqQpn) >= FIRST_QPN, `${where}: QPN`);
  assert.ok(PATH_MTU_CODES.includes(Number(cm.reqPathMtu)), `${where}: path MTU`);
}

/** By message: the ids of its sender and of its receiver. */
const IDS = {
  REP: ['repCommId', 'repRemoteCommId'],
  RTU: ['rtuCommId', 'rtuRemoteCommId'],
  REJ: ['rejCommId', 'rejRemoteCommId'],
  DREQ: ['dreqCommId', 'dreqRemoteCommId'],
  DREP: ['drepCommId', 'drepRemoteCommId'],
} as const satisfies Partial<Record<CmName, readonly [CmField, CmField]>>;

function addMessage(
  byRequest: ReadonlyMap<string, Conversation>,
  byReply: Map<string, Conversation>,
  name: CmName,
  packet: Dissection,
  where: string,
): void {
  if (!(name in IDS)) return;
  const [own, peers] = IDS[name as keyof typeof IDS];
  const ownId = packet.cm[own];
  const peersId = packet.cm[peers];
  const { source, destination } = packet;
  // Either side of the conversation may have sent it; to nobody's id, when it has heard of none.
  const conversation =
    byRequest.get(`${destination} ${peersId}`) ??
    byReply.get(`${destination} ${peersId}`) ??
    byRequest.get(`${source} ${ownId}`);
  assert.ok(conversation !== undefined, `${where}: nobody has the id ${peersId}`);
  const { request } = conversation;
  const fromClient = source === request.source && destination !== request.source;
  if (name === 'REP') {
    checkReply(conversation, packet, where);
    conversation.reply ??= packet;
    byReply.set(`${source} ${ownId}`, conversation);
  }
  const { reply } = conversation;
  if (name !== 'REJ') {
    const expected = fromClient ? request.cm.reqCommId : reply?.cm.repCommId;
    assert.equal(ownId, expected, `${where}: id of the sender`);
  }
  if (name === 'DREQ') {
    const qpn = fromClient ? reply?.cm.repQpn : request.cm.reqQpn;
    assert.equal(packet.cm.dreqRemoteQpn, qpn, `${where}: QPN of the receiver`);
  }
  if (name === 'DREP') {
    const asked = conversation.messages.filter((message) => message.name === 'DREQ');
    const ids = asked.map((message) => message.packet.cm.transactionId);
    assert.ok(ids.includes(packet.cm.transactionId), `${where}: transaction of no DREQ`);
  }
  if (name === 'RTU' || name === 'REP' || (name === 'REJ' && !fromClient)) {
    assert.equal(packet.cm.transactionId, request.cm.transactionId, `${where}: transaction`);
  }
  conversation.messages.push({ name, packet });
}

/** No more reads are promised or wanted than the other side has offered. */
function checkReply({ request, reply }: Conversation, { cm }: Dissection, where: string): void {
  assert.ok(Number(cm.repQpn) >= FIRST_QPN, `${where}: QPN`);
  const most = (field: CmField, offered: CmField): void =>
    assert.ok(Number(cm[field]) <= Number(request.cm[offered]), `${where}: ${field}`);
  most('repResponderResources', 'reqInitiatorDepth');
  most('repInitiatorDepth', 'reqResponderResources');
  if (reply !== undefined) assert.deepEqual(cm, reply.cm, `${where}: differs from the first one`);
}

/** The first request of each direction has the PSN that its receiver has asked for. */
function checkFirstPsns(
  conversations: readonly Conversation[],
  packets: readonly Dissection[],
): void {
  const starts = new Map<string, number[]>();
  const expect = (address: string, qpn: string, psn: string): void => {
    const key = `${address} ${Number(qpn)}`;
    starts.set(key, [...(starts.get(key) ?? []), Number(psn)]);
  };
  for (const { request, reply } of conversations) {
    expect(request.source, request.cm.reqQpn, request.cm.reqStartingPsn);
    if (reply !== undefined) expect(reply.source, reply.cm.repQpn, reply.cm.repStartingPsn);
  }
  const seen = new Map<string, Set<number>>();
  for (const { opcode = 0xff, destination, destinationQpn, psn } of packets) {
    if (!isRequest(opcode) || destinationQpn < FIRST_QPN) continue;
    const key = `${destination} ${destinationQpn}`;
    seen.set(key, (seen.get(key) ?? new Set()).add(psn));
  }
  for (const [key, psns] of seen) {
    const agreed = starts.get(key);
    assert.ok(agreed !== undefined, `data for ${key}, which no connection has`);
    assert.ok(
      agreed.some((psn) => psns.has(psn)),
      `data for ${key} does not start at PSN ${agreed.join(' or ')}`,
    );
  }
}
