// A target that lets an initiator in and answers nothing: waits between sessions grow.
import assert from 'node:assert/strict';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { openDisk } from '../../../../../../samples/ulp/iser/index.js';
import {
  emitText,
  LOGIN_STAGE,
  loginResponse,
  PduStream,
  readInitiatorPdu,
  type TextPair,
} from '../../../../../../samples/ulp/iser/wire/index.js';
import { loopback } from '../../../../../support/loopback.js';

const ADDRESS = loopback(99, 1);
const TARGET = 'iqn.2026-01.org.example:disk';

describe('an initiator whose target answers no command', () => {
  let server: Server;
  let logins: number;
  let answers: TextPair[];
  beforeEach(async () => {
    logins = 0;
    answers = [['TargetPortalGroupTag', '1']];
    server = createServer((socket) => {
      const stream = new PduStream(1 << 20);
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        for (const bytes of stream.push(chunk)) {
          const pdu = readInitiatorPdu(bytes);
          if (pdu.type !== 'loginRequest') {
            socket.destroy();
            return;
          }
          logins++;
          const data = emitText(answers);
          const { header } = loginResponseTo(pdu.header, data.length);
          socket.write(Buffer.concat([header, data, new Uint8Array(-data.length & 3)]));
        }
      });
    });
    await new Promise<void>((resolve) => server.listen(0, ADDRESS, resolve));
  });
  afterEach(() => void server.close());

  const open = (notices: string[]): ReturnType<typeof openDisk> =>
    openDisk({
      ...{ address: ADDRESS, port: (server.address() as AddressInfo).port },
      ...{ transport: 'tcp', target: TARGET },
      reconnect: { firstMs: 8, mostMs: 64, attempts: 6 },
      notice: (what) => notices.push(what),
    });

  it('waits longer each time, and gives up', async () => {
    const notices: string[] = [];
    await assert.rejects(open(notices), { code: 'ISCSI_CONNECTION' });
    assert.equal(logins, 7);
    const waits = notices.flatMap((notice) => /tried in ([0-9]+) ms/.exec(notice)?.[1] ?? []);
    assert.equal(waits.length, 6, notices.join('\n'));
    for (const [at, most] of [8, 16, 32, 64, 64, 64].entries()) {
      const waitMs = Number(waits[at]);
      assert.ok(waitMs >= Math.floor(most * 0.75) && waitMs <= most, waits.join());
    }
  });

  it('is left by the login where it rejects a key', async () => {
    answers.push(['HeaderDigest', 'Reject']);
    await assert.rejects(open([]), {
      code: 'ISCSI_LOGIN_FAILED',
      message: 'the target rejects HeaderDigest=None, and there is nothing else to offer',
    });
    assert.equal(logins, 1);
  });
});

interface Request {
  readonly isid: Uint8Array;
  readonly initiatorTaskTag: number;
  readonly cmdSn: number;
}

function loginResponseTo(
  { isid, initiatorTaskTag, cmdSn }: Request,
  dataSegmentLength: number,
): { header: Uint8Array } {
  const { OPERATIONAL: currentStage, FULL_FEATURE: nextStage } = LOGIN_STAGE;
  const numbers = { statSn: 1, expCmdSn: cmdSn, maxCmdSn: (cmdSn + 8) >>> 0 };
  const stages = { transit: true, currentStage, nextStage, tsih: 1 };
  const fields = { isid: isid.slice(), initiatorTaskTag, dataSegmentLength };
  return { header: loginResponse.make({ ...numbers, ...stages, ...fields }).bytes };
}
