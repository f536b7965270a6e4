// Data over TCP as a target moves it: sequences of Data-In, R2T answered by Data-Out.
import assert from 'node:assert/strict';

import {
  ProtocolFault,
  TcpTransfers,
  type TransferTask,
} from '../../../../../../samples/ulp/iser/session/target-side/index.js';
import { readInitiatorPdu, readTargetPdu, type TargetPdu } from './formats.js';
import { pduOf, Time } from './scene.js';

const NEGOTIATED = {
  immediateData: true,
  firstBurstLength: 512,
  maxBurstLength: 1000,
  sendDataSegmentLength: 400,
  recvDataSegmentLength: 400,
  rdmaExtensions: false,
};
const NUMBERS = { statSn: 5, expCmdSn: 6, maxCmdSn: 9 };
type DataOut = Parameters<TcpTransfers['dataOut']>[0];

class Task implements TransferTask {
  readonly controller = new AbortController();
  readonly lun = Uint8Array.of(0, 3, 0, 0, 0, 0, 0, 0);
  readonly unsolicitedBytes = 0;
  readonly advertised = undefined;
  constructor(readonly initiatorTaskTag: number) {}
  get signal(): AbortSignal {
    return this.controller.signal;
  }
}

class Scene {
  readonly sent: TargetPdu[] = [];
  readonly time = new Time();
  stalls = 0;
  private readonly done: ((error?: Error | null) => void)[] = [];
  readonly transfers = new TcpTransfers({
    negotiated: NEGOTIATED,
    numbers: NUMBERS,
    send: (header, data, sent) => {
      this.sent.push(readTargetPdu(Buffer.concat([header, data])));
      if (sent !== undefined) this.done.push(sent);
    },
    alarm: this.time.alarm,
    timeoutMs: 3000,
    stalled: () => void this.stalls++,
  });

  flush(error?: Error): void {
    for (const sent of this.done.splice(0)) sent(error);
  }

  answer(values: object, data: Uint8Array = new Uint8Array(0)): void {
    this.transfers.dataOut(readInitiatorPdu(pduOf('dataOut', values, data)) as DataOut);
  }
}

describe('iSER target: data over TCP', () => {
  it('cuts data-in by segment and burst, and numbers it through the command', async () => {
    const scene = new Scene();
    const task = new Task(7);
    const data = Uint8Array.from({ length: 1300 }, (_, at) => at & 0xff);
    const put = scene.transfers.putData(task, 512, data);
    scene.flush();
    await put;
    void scene.transfers.putData(task, 1812, data.subarray(0, 100));
    const rows = scene.sent.map(({ type, header, data: bytes }) => {
      assert.ok(type === 'dataIn');
      assert.deepEqual([header.initiatorTaskTag, header.hasStatus], [7, false]);
      return [header.dataSn, header.bufferOffset, bytes.length, header.final];
    });
    assert.deepEqual(rows, [
      [0, 512, 400, false],
      [1, 912, 400, false],
      [2, 1312, 200, true],
      [3, 1512, 300, true],
      [4, 1812, 100, true],
    ]);
    assert.deepEqual(
      Buffer.concat(scene.sent.slice(0, 4).map((pdu) => pdu.data)),
      Buffer.from(data),
    );
  });

  it("tells when the bytes are the caller's again, and why they never left", async () => {
    const scene = new Scene();
    let isBack = false;
    const put = scene.transfers
      .putData(new Task(7), 0, new Uint8Array(10))
      .then(() => (isBack = true));
    await Promise.resolve();
    assert.equal(isBack, false);
    scene.flush();
    await put;
    const failing = scene.transfers.putData(new Task(8), 0, new Uint8Array(10));
    scene.flush(new Error('the connection is gone'));
    await assert.rejects(failing, /the connection is gone/);
    await scene.transfers.putData(new Task(9), 0, new Uint8Array(0));
    assert.equal(scene.sent.length, 2);
  });

  it('asks for data-out burst by burst', async () => {
    const scene = new Scene();
    const into = new Uint8Array(1500);
    const got = scene.transfers.getData(new Task(7), 512, into);
    const first = scene.sent[0];
    assert.ok(first?.type === 'r2t');
    const { header } = first;
    assert.deepEqual([header.bufferOffset, header.desiredDataTransferLength], [512, 1000]);
    assert.deepEqual([header.r2tSn, header.statSn, header.lun[1]], [0, 5, 3]);
    const tag = header.targetTransferTag;
    const common = { initiatorTaskTag: 7, targetTransferTag: tag };
    scene.answer({ ...common, dataSn: 0, bufferOffset: 512 }, new Uint8Array(600).fill(1));
    scene.answer(
      { ...common, dataSn: 1, bufferOffset: 1112, final: true },
      new Uint8Array(400).fill(2),
    );
    await new Promise(setImmediate);
    const second = scene.sent[1];
    assert.ok(second?.type === 'r2t');
    assert.deepEqual(
      [second.header.r2tSn, second.header.bufferOffset, second.header.desiredDataTransferLength],
      [1, 1512, 500],
    );
    scene.answer(
      {
        ...common,
        targetTransferTag: second.header.targetTransferTag,
        bufferOffset: 1512,
        final: true,
      },
      new Uint8Array(500).fill(3),
    );
    await got;
    assert.deepEqual(
      [into[0], into[599], into[600], into[999], into[1000], into[1499]],
      [1, 1, 2, 2, 3, 3],
    );
  });

  describe('refuses Data-Out', () => {
    const REFUSED: readonly [string, RegExp, object, number][] = [
      ['of another transfer', /was not given/, { targetTransferTag: 99 }, 10],
      ['of another task', /InitiatorTaskTag/, { initiatorTaskTag: 8 }, 10],
      ['out of order', /DataSN/, { dataSn: 1 }, 10],
      ['at another place', /BufferOffset/, { bufferOffset: 1 }, 10],
      ['of more than was asked for', /has 101 bytes/, {}, 101],
      ['of nothing', /has 0 bytes/, {}, 0],
      ['that ends too early', /F is true/, { final: true }, 10],
      ['that does not end', /F is false/, {}, 100],
    ];
    for (const [what, message, values, bytes] of REFUSED) {
      it(what, async () => {
        const scene = new Scene();
        const got = scene.transfers.getData(new Task(7), 0, new Uint8Array(100));
        const asked = scene.sent[0];
        const tag = asked?.type === 'r2t' ? asked.header.targetTransferTag : 0;
        const answer = { initiatorTaskTag: 7, targetTransferTag: tag, ...values };
        assert.throws(
          () => scene.answer(answer, new Uint8Array(bytes)),
          (error) => error instanceof ProtocolFault && message.test(error.message),
        );
        scene.transfers.end(new Error('over'));
        await assert.rejects(got, /over/);
      });
    }
  });

  it('hands data-in to the socket as it leaves, and tells when it does not', async () => {
    const scene = new Scene();
    const data = new Uint8Array(100 << 10);
    const puts = [1, 2, 3, 4, 5].map((tag) => scene.transfers.putData(new Task(tag), 0, data));
    const tags = (): readonly number[] => [
      ...new Set(scene.sent.map(({ header }) => header.initiatorTaskTag)),
    ];
    assert.deepEqual(tags(), [1, 2, 3], 'until there are 256 KiB');
    scene.time.pass(2900);
    scene.flush();
    assert.deepEqual(tags(), [1, 2, 3, 4, 5]);
    scene.time.pass(2900);
    assert.equal(scene.stalls, 0);
    scene.time.pass(1600);
    assert.equal(scene.stalls, 1);
    scene.flush();
    await Promise.all(puts);
  });

  it('tells of data-out that does not come, though other data-out was aborted', async () => {
    const scene = new Scene();
    const task = new Task(8);
    const aborted = scene.transfers.getData(task, 0, new Uint8Array(100));
    task.controller.abort(new Error('ABORT TASK'));
    await assert.rejects(aborted);
    scene.time.pass(10_000);
    assert.equal(scene.stalls, 0);
    const got = scene.transfers.getData(new Task(7), 0, new Uint8Array(100));
    scene.time.pass(2900);
    assert.equal(scene.stalls, 0);
    scene.time.pass(1600);
    assert.equal(scene.stalls, 1);
    scene.transfers.end(new Error('over'));
    await assert.rejects(got, /over/);
    assert.equal(scene.time.pending, 0);
  });

  it('leaves memory alone once the task is aborted, and takes what still comes', async () => {
    const scene = new Scene();
    const task = new Task(7);
    const into = new Uint8Array(100);
    const got = scene.transfers.getData(task, 0, into);
    task.controller.abort(new Error('ABORT TASK'));
    await assert.rejects(got, /ABORT TASK/);
    const asked = scene.sent[0];
    const tag = asked?.type === 'r2t' ? asked.header.targetTransferTag : 0;
    const values = { initiatorTaskTag: 7, targetTransferTag: tag, final: true };
    scene.answer(values, new Uint8Array(100).fill(9));
    assert.ok(into.every((byte) => byte === 0));
    await assert.rejects(scene.transfers.getData(task, 0, into), /ABORT TASK/);
  });
});
