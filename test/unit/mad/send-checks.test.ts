/** What an agent may send: limits, transaction ids, and where the ACKs of a transfer would go. */
import assert from 'node:assert/strict';
import { type MadAgentOptions, SpiError } from '../../../core/spi/index.js';
import { checkSend } from '../../../plugins/mad/provider.js';
import { MAX_RMPP_BYTES } from '../../../plugins/mad/rmpp-segments.js';
import { RMPP_FLAG } from '../../../plugins/mad/wire/rmpp-header.js';
import { VENDOR_CLASS, madOf } from '../../support/mad-pair.js';
import { RMPP_CLASS, RMPP_HEADERS, RMPP_OUI } from '../../support/rmpp-pair.js';

const HI_TID = 0x123456;
const SEND = 3;
const RESPONSE = 0x80;
const FLAGS_AT = 26;

const PLAIN: MadAgentOptions = {
  managementClass: VENDOR_CLASS,
  classVersion: 1,
  methods: [SEND],
  onReceive: () => undefined,
  onSend: () => undefined,
};
const WITH_RMPP: MadAgentOptions = {
  ...PLAIN,
  managementClass: RMPP_CLASS,
  oui: RMPP_OUI,
  rmpp: true,
};

interface Given {
  readonly data: Uint8Array;
  readonly timeoutUs?: number;
  readonly retries?: number;
}

function check(agent: MadAgentOptions, given: Given): ReturnType<typeof checkSend> {
  const destination = { gid: new Uint8Array(16), localGidIndex: 0, qpn: 1, qkey: 0 };
  return checkSend({ destination, timeoutUs: 0, retries: 0, ...given }, agent, HI_TID);
}

function refused(agent: MadAgentOptions, given: Given, message: RegExp): void {
  assert.throws(
    () => check(agent, given),
    (error: unknown) =>
      error instanceof SpiError && error.code === 'EINVAL' && message.test(error.message),
  );
}

function ofLength(lengthBytes: number, header: Parameters<typeof madOf>[0] = {}): Uint8Array {
  const fields = { managementClass: RMPP_CLASS, method: SEND, transactionIdHi: HI_TID, ...header };
  const data = new Uint8Array(lengthBytes);
  data.set(madOf(fields).subarray(0, Math.min(lengthBytes, RMPP_HEADERS)));
  return data;
}

describe('MAD: what may be sent', () => {
  it('a timeout is 0 or more and finite, a number of retries whole and 0 or more', () => {
    const data = madOf({ method: SEND, transactionIdHi: HI_TID });
    for (const timeoutUs of [0, 0.5, 1e9]) check(PLAIN, { data, timeoutUs });
    for (const timeoutUs of [-0.5, NaN, Infinity]) {
      refused(
        PLAIN,
        { data, timeoutUs },
        /timeoutUs is .*; it must be .* 0 \(no response expected\) on/,
      );
    }
    check(PLAIN, { data, retries: 7 });
    for (const retries of [-1, 1.5, NaN, Infinity]) refused(PLAIN, { data, retries }, /retries/);
  });

  it('a transaction id has the agent in its upper half where a response is expected', () => {
    const foreign = madOf({ method: SEND, transactionIdHi: HI_TID + 1 });
    check(PLAIN, { data: foreign });
    refused(PLAIN, { data: foreign, timeoutUs: 1 }, /upper half/);
    const unknown = madOf({ baseVersion: 2, transactionIdHi: HI_TID });
    assert.equal(check(PLAIN, { data: unknown }).header, undefined);
    refused(PLAIN, { data: unknown, timeoutUs: 1 }, /upper half/);
  });

  it('without RMPP a MAD has 256 bytes and goes as one, whatever its flags say', () => {
    const data = madOf({ method: SEND });
    data[FLAGS_AT] = RMPP_FLAG.ACTIVE;
    assert.equal(check(PLAIN, { data }).transferHeader, undefined);
    for (const lengthBytes of [0, 255, 257]) {
      refused(PLAIN, { data: new Uint8Array(lengthBytes) }, /must be 256/);
    }
  });

  it('with RMPP 256 bytes go as one MAD unless "active" is set, others as a transfer', () => {
    const plain = ofLength(256);
    assert.equal(check(WITH_RMPP, { data: plain }).transferHeader, undefined);
    const active = plain.slice();
    active[FLAGS_AT] = RMPP_FLAG.ACTIVE;
    for (const data of [active, ofLength(255), ofLength(257)]) {
      const { header, transferHeader } = check(WITH_RMPP, { data });
      assert.equal(transferHeader?.managementClass, RMPP_CLASS);
      assert.equal(header, transferHeader);
    }
  });

  it('a transfer has at least the headers of its class and 64 MiB at most', () => {
    check(WITH_RMPP, { data: ofLength(RMPP_HEADERS) });
    refused(WITH_RMPP, { data: ofLength(RMPP_HEADERS - 1) }, /39 bytes: 40 to 67108864/);
    refused(WITH_RMPP, { data: ofLength(23) }, /23 bytes without a MAD header/);
    check(WITH_RMPP, { data: ofLength(MAX_RMPP_BYTES) });
    refused(WITH_RMPP, { data: ofLength(MAX_RMPP_BYTES + 1) }, /67108865 bytes/);
  });

  it('a transfer is of a class with RMPP', () => {
    const data = ofLength(300, { managementClass: VENDOR_CLASS });
    refused(WITH_RMPP, { data }, /class 10 has no RMPP/);
  });

  it('a transfer that is a request has the agent in its transaction id, awaited or not', () => {
    const data = ofLength(300, { transactionIdHi: HI_TID + 1 });
    refused(WITH_RMPP, { data }, /upper half/);
  });

  it('a transfer that is a response needs the method that its ACKs come to', () => {
    const reply = { method: SEND | RESPONSE, transactionIdHi: 0xbeef };
    check(WITH_RMPP, { data: ofLength(300, reply) });
    const message = /its ACKs are of method/;
    for (const other of [
      { method: 2 | RESPONSE },
      { classVersion: 2 },
      { managementClass: 0x31 },
    ]) {
      refused(WITH_RMPP, { data: ofLength(300, { ...reply, ...other }) }, message);
    }
  });
});
