import assert from 'node:assert/strict';

import { assertReportArrived } from './perftest.js';

describe("guest: perftest's report of a bandwidth test", () => {
  const heading =
    ' #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n';
  const table = `${heading} 65536      200              93.28              91.07\t\t   0.001457\n`;

  it('has arrived as the client prints it', () => {
    assertReportArrived('listening\nit says 200 of 65536 B, on average 91.07 MiB/s\ndone\n', table);
  });

  it('is 0.00 on both sides where perftest does not know its clock', () => {
    const unknown = table.replace('93.28', '0.00').replace('91.07', '0.00');
    assertReportArrived('it says 200 of 65536 B, on average 0.00 MiB/s\n', unknown);
  });

  for (const wrong of [
    'it says 200 of 65536 B, on average 91.08 MiB/s\n',
    'it says 201 of 65536 B, on average 91.07 MiB/s\n',
    'it says 200 of 65535 B, on average 91.07 MiB/s\n',
    'listening\n',
  ]) {
    it(`is refused: ${wrong.trim()}`, () => {
      assert.throws(() => assertReportArrived(wrong, table), assert.AssertionError);
    });
  }

  it('is refused when the client has printed none', () => {
    const told = 'it says 200 of 65536 B, on average 91.07 MiB/s\n';
    assert.throws(() => assertReportArrived(told, heading), /no report/);
  });
});
