// The judge of conversations, judged by ones that are wrong in one place each.
import assert from 'node:assert/strict';

import { checkConversations, sequenceOf } from './conversation.js';
import { CM_ATTRIBUTE, type CmField, type CmName, type Dissection } from './tshark.js';

const [CLIENT, SERVER] = ['10.0.0.1', '10.0.0.2'] as const;
const TITLE: Partial<Record<CmName, string>> = {
  REQ: 'ConnectRequest',
  REP: 'ConnectReply',
  RTU: 'ReadyToUse',
  REJ: 'ConnectReject',
  DREQ: 'DisconnectRequest',
  DREP: 'DisconnectReply',
};
const NO_FIELDS = {} as Record<CmField, string>;
const REQUEST = {
  ...{ reqCommId: '0x1', reqServicePrefix: '0000000001', reqServiceProtocol: '0x06' },
  ...{ reqServicePort: '0x1e78', reqQpn: '0x11', reqStartingPsn: '0x64', reqPathMtu: '0x05' },
  ...{ reqServiceType: '0x0', reqPkey: '0xffff', reqLocalLid: '65535', reqMajorVersion: '0x0' },
  ...{ reqIpVersion: '0x4', reqLocalGidIpv4: CLIENT, reqRemoteGidIpv4: SERVER },
  ...{ reqSourceIpv4: CLIENT, reqDestinationIpv4: SERVER, reqSourcePort: '0x9999' },
  ...{ reqResponderResources: '0x10', reqInitiatorDepth: '0x10', transactionId: '0x7' },
};
const REPLY = {
  ...{ repCommId: '0x2', repRemoteCommId: '0x1', repQpn: '0x22', repStartingPsn: '0xc8' },
  ...{ repResponderResources: '0x10', repInitiatorDepth: '0x10', transactionId: '0x7' },
};

let frame = 0;
type Fields = Partial<Record<CmField, string>>;

function packet(source: string, rest: Partial<Dissection>): Dissection {
  return {
    frame: ++frame,
    source,
    destination: source === CLIENT ? SERVER : CLIENT,
    opcode: 0x64,
    destinationQpn: 1,
    psn: 0,
    cmAttribute: undefined,
    rejectReason: undefined,
    rejectPrivateData: '',
    isMalformed: false,
    info: '',
    cm: NO_FIELDS,
    ...rest,
  };
}

function message(name: CmName, source: string, fields: Fields): Dissection {
  const cm = { ...fields } as Record<CmField, string>;
  return packet(source, { cmAttribute: CM_ATTRIBUTE[name], info: `CM: ${TITLE[name]}`, cm });
}

function request(psn: number, source: string, destinationQpn: number): Dissection {
  return packet(source, { opcode: 4, psn, destinationQpn });
}

/** A connection with one message each way; `changes` spoil one message of it. */
function life(changes: Partial<Record<CmName, Fields>> = {}): Dissection[] {
  const pair = (own: string, peers: string): Fields => ({ [own]: '0x1', [peers]: '0x2' });
  const dreq = { ...pair('dreqCommId', 'dreqRemoteCommId'), dreqRemoteQpn: '0x22' };
  return [
    message('REQ', CLIENT, { ...REQUEST, ...changes.REQ }),
    message('REP', SERVER, { ...REPLY, ...changes.REP }),
    message('RTU', CLIENT, {
      ...{ ...pair('rtuCommId', 'rtuRemoteCommId'), transactionId: '0x7' },
      ...changes.RTU,
    }),
    request(0xc8, CLIENT, 0x22),
    request(0x64, SERVER, 0x11),
    message('DREQ', CLIENT, { ...dreq, transactionId: '0x8', ...changes.DREQ }),
    message('DREP', SERVER, {
      ...{ drepCommId: '0x2', drepRemoteCommId: '0x1', transactionId: '0x8' },
      ...changes.DREP,
    }),
  ];
}

describe('guest: conversations of a capture', () => {
  it('a whole life is one conversation', () => {
    const conversations = checkConversations(life());
    assert.deepEqual(conversations.map(sequenceOf), ['REQ REP RTU DREQ DREP']);
  });

  it('an end by the passive side crosses what the active side sends meanwhile', () => {
    const [req, rep, rtu, , , dreq, drep] = life();
    assert.ok(req && rep && rtu && dreq && drep);
    const ids = { rejCommId: '0x2', rejRemoteCommId: '0x1', transactionId: '0x7' };
    const rej = message('REJ', SERVER, ids);
    const orders = [
      [req, rep, rej, rtu],
      [req, rep, rtu, rej],
      [req, rep, rej, rtu, dreq, drep],
      [req, rep, rtu, rej, dreq, drep],
      [req, rep, rtu, dreq, rej, drep],
    ];
    for (const packets of orders) {
      const [conversation] = checkConversations(packets);
      assert.equal(conversation?.messages.length, packets.length);
    }
    const late = [req, rep, rtu, dreq, drep, rej];
    assert.throws(() => checkConversations(late), /REQ REP RTU DREQ DREP REJ is no conversation/);
  });

  const WRONG: readonly (readonly [string, Dissection[], RegExp])[] = [
    ['a GID that is not the source', life({ REQ: { reqLocalGidIpv4: '10.0.0.9' } }), /LocalGid/],
    ['a header of another IP version', life({ REQ: { reqIpVersion: '0x6' } }), /reqIpVersion/],
    ['a partition key of one partition', life({ REQ: { reqPkey: '0x7fff' } }), /reqPkey/],
    ['a reply to nobody', life({ REP: { repRemoteCommId: '0x5' } }), /nobody has the id/],
    ['more reads than offered', life({ REP: { repInitiatorDepth: '0x11' } }), /InitiatorDepth/],
    ['a reply of another transaction', life({ REP: { transactionId: '0x9' } }), /transaction/],
    ['the id of another connection', life({ RTU: { rtuCommId: '0x3' } }), /id of the sender/],
    ['the QPN of the sender', life({ DREQ: { dreqRemoteQpn: '0x11' } }), /QPN of the receiver/],
    ['an answer to no DREQ', life({ DREP: { transactionId: '0x7' } }), /of no DREQ/],
    ['another starting PSN', life({ REP: { repStartingPsn: '0xc9' } }), /does not start at PSN/],
    ['an RTU before the REP', [0, 2, 1].map((at) => life()[at] ?? assert.fail()), /REQ RTU REP/],
    ['data without a connection', [request(1, CLIENT, 0x33)], /which no connection has/],
    ['a message by another name', [{ ...(life()[0] ?? assert.fail()), info: 'CM: ?' }], /REQ/],
  ];
  for (const [what, packets, complaint] of WRONG) {
    it(`finds ${what}`, () => {
      assert.throws(() => checkConversations(packets), complaint);
    });
  }

  it('finds a repetition that says something else', () => {
    const [first, ...rest] = life();
    assert.ok(first !== undefined);
    const again = message('REQ', CLIENT, { ...REQUEST, reqStartingPsn: '0x65' });
    assert.throws(() => checkConversations([first, again, ...rest]), /differs from the first/);
  });
});
