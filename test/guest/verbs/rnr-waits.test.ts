// Made-up captures: who waits passes, who does not fails, and what crosses a NAK is told apart.
import assert from 'node:assert/strict';

import { OPCODE } from '../roce.js';
import {
  type CapturedRequest,
  type CapturedResponse,
  RNR_WAIT_US,
  rnrWaits,
  type RnrWaits,
} from './rnr-waits.js';

const PSN = 0xffffff;
const TIMER = 20;
const WAIT_US = RNR_WAIT_US[TIMER];
const ACK_TIMEOUT_US = 500_000;
const SEND_ONLY = 0x04;
const SEQUENCE_NAK = 0x60;

const sent = (timeUs: number, psn = PSN, opcode = SEND_ONLY): CapturedRequest => ({
  ...{ timeUs, psn, opcode },
});
const nak = (timeUs: number, syndrome = 0x20 | TIMER, psn = PSN): CapturedResponse => ({
  ...{ timeUs, psn, syndrome },
});
const waits = (requests: CapturedRequest[], responses: CapturedResponse[]): RnrWaits =>
  rnrWaits({ requests, responses, ackTimeoutUs: ACK_TIMEOUT_US });
const HONOURED = { broken: [], crossings: 0 };
const CROSSED = { broken: [], crossings: 1 };

describe('RNR waits in a capture', () => {
  it('are honoured by who waits, each time', () => {
    const requests = [sent(0), sent(100 + WAIT_US), sent(300 + 2 * WAIT_US)];
    assert.deepEqual(waits(requests, [nak(50), nak(200 + WAIT_US)]), HONOURED);
  });

  it('are of no matter to what is in flight behind the refused packet', () => {
    const requests = [sent(0), sent(60, 0), sent(70, 1), sent(100 + WAIT_US)];
    assert.deepEqual(waits(requests, [nak(50)]), HONOURED);
  });

  it('are broken by who does not wait at all', () => {
    const { broken, crossings } = waits([sent(0), sent(60)], [nak(50)]);
    assert.deepEqual(broken, [`PSN ${PSN} again 10 us after its RNR NAK`]);
    assert.equal(crossings, 0);
  });

  it('are broken by who waits for half of it', () => {
    assert.equal(waits([sent(0), sent(50 + WAIT_US / 2)], [nak(50)]).broken.length, 1);
  });

  it('are broken by a repetition for a sequence NAK behind the RNR NAK', () => {
    const responses = [nak(50), nak(60, SEQUENCE_NAK)];
    assert.equal(waits([sent(0), sent(1, 0), sent(70)], responses).broken.length, 1);
  });

  it('are crossed by a repetition for a sequence NAK before the RNR NAK', () => {
    const responses = [nak(20, SEQUENCE_NAK), nak(50)];
    assert.deepEqual(waits([sent(0), sent(1, 0), sent(60)], responses), CROSSED);
    const twice = waits([sent(0), sent(1, 0), sent(60), sent(70)], responses);
    assert.deepEqual([twice.broken.length, twice.crossings], [1, 1]);
  });

  it('are crossed by who asks, after silence, before a NAK has come', () => {
    assert.deepEqual(waits([sent(0), sent(6000)], [nak(10_000), nak(10_001)]), CROSSED);
    const again = 50 + WAIT_US;
    const asked = [sent(0), sent(again), sent(again + 6000)];
    assert.deepEqual(waits(asked, [nak(50), nak(again + 7000), nak(again + 7001)]), CROSSED);
  });

  it('are crossed by a time-out, once', () => {
    const naks = [nak(ACK_TIMEOUT_US - 5)];
    assert.deepEqual(waits([sent(0), sent(ACK_TIMEOUT_US)], naks), CROSSED);
    const twice = [sent(0), sent(ACK_TIMEOUT_US), sent(ACK_TIMEOUT_US + 10)];
    const { broken, crossings } = waits(twice, naks);
    assert.deepEqual([broken.length, crossings], [1, 1]);
  });

  it('are crossed by the time-out of a packet before the refused one', () => {
    const first = [sent(0, PSN - 1), sent(100)];
    const again = [sent(ACK_TIMEOUT_US, PSN - 1), sent(ACK_TIMEOUT_US + 1)];
    const naks = [nak(ACK_TIMEOUT_US - 5)];
    assert.deepEqual(waits([...first, ...again], naks), CROSSED);
  });

  it('are crossed by a READ in front whose responses were lost', () => {
    const read = (timeUs: number): CapturedRequest => sent(timeUs, PSN - 4, OPCODE.READ_REQUEST);
    assert.deepEqual(waits([read(0), sent(10), read(60), sent(70)], [nak(50)]), CROSSED);
  });

  it('last from the second NAK, if it refuses the repetition', () => {
    const again = 50 + WAIT_US;
    const naks = [nak(50), nak(again + 50)];
    const third = (timeUs: number): RnrWaits => waits([sent(0), sent(again), sent(timeUs)], naks);
    assert.deepEqual(third(again + 50 + WAIT_US), HONOURED);
    assert.equal(third(again + WAIT_US / 2).broken.length, 1);
  });

  it('last from the first or the second NAK, if both refuse what crossed', () => {
    const crossing = ACK_TIMEOUT_US;
    const naks = [nak(crossing - 5), nak(crossing + 5000)];
    const third = (timeUs: number): RnrWaits =>
      waits([sent(0), sent(crossing), sent(timeUs)], naks);
    assert.deepEqual(third(crossing + 5000 + WAIT_US), CROSSED);
    assert.deepEqual(third(crossing + WAIT_US), { broken: [], crossings: 2 });
    assert.equal(third(crossing + 5001).broken.length, 1);
  });

  it('of an unknown timer are not judged', () => {
    assert.throws(() => waits([sent(0)], [nak(50, 0x20 | 1)]), /RNR timer 1/);
  });
});
