// Which command starts when, what aborts it, and who is told.

import assert from 'node:assert/strict';
import {
  type ScsiCommand,
  type ScsiResult,
  ScsiStatus,
  type TaskAttribute,
} from '../../../../../../samples/ulp/iser/scsi/index.js';
import { MAX_TASKS } from '../../../../../../samples/ulp/iser/scsi/unit/task-set.js';
import { cdb, cdb16, INITIATOR, OTHER, Scene } from './scene.js';

const READY = '00 00 00 00 00 00';
const LUN_0 = new Uint8Array(8);

/** A write that has come to ask for its data, and waits for it. */
class HeldWrite {
  readonly result: Promise<ScsiResult>;
  hasStarted = false;
  private release!: () => void;
  readonly abort = new AbortController();

  constructor(scene: Scene, from = INITIATOR, attribute: TaskAttribute = 'SIMPLE', lba = 0) {
    const released = new Promise<void>((resolve, reject) => {
      this.release = resolve;
      this.abort.signal.addEventListener('abort', () => reject(new Error('ended')));
    });
    released.catch(() => {});
    const command: ScsiCommand = {
      initiatorPort: from,
      lun: LUN_0,
      cdb: cdb16(0x8a, lba, 1),
      attribute,
      dataOutBytes: 512,
      dataInBytes: 0,
      pull: async (_offset, into) => {
        this.hasStarted = true;
        await released;
        into.fill(9);
      },
      push: () => assert.fail('there is no data-in'),
      abort: this.abort,
    };
    this.result = scene.target.execute(command);
  }

  finish(): Promise<ScsiResult> {
    this.release();
    return this.result;
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('SCSI: task attributes', () => {
  const order = async (...attributes: readonly TaskAttribute[]): Promise<boolean[]> => {
    const scene = new Scene({ chunks: 8 });
    const writes = attributes.map((attribute) => new HeldWrite(scene, INITIATOR, attribute));
    await settled();
    const started = writes.map(({ hasStarted }) => hasStarted);
    for (const write of writes) assert.equal((await write.finish()).status, ScsiStatus.GOOD);
    return started;
  };

  it('let simple commands run side by side', async () => {
    assert.deepEqual(await order('SIMPLE', 'SIMPLE', 'SIMPLE'), [true, true, true]);
  });

  it('make an ordered command wait for all before it, and all behind it wait', async () => {
    assert.deepEqual(await order('SIMPLE', 'ORDERED', 'SIMPLE'), [true, false, false]);
    assert.deepEqual(await order('ORDERED', 'ORDERED'), [true, false]);
  });

  it('let the head of the queue start at once', async () => {
    const started = await order('SIMPLE', 'ORDERED', 'HEAD OF QUEUE', 'SIMPLE');
    assert.deepEqual(started, [true, false, true, false]);
  });

  it('concern the commands of their nexus alone', async () => {
    const scene = new Scene({ chunks: 8 });
    const others = (['ORDERED', 'HEAD OF QUEUE'] as const).map(
      (attribute) => new HeldWrite(scene, OTHER, attribute),
    );
    await settled();
    for (const attribute of ['SIMPLE', 'ORDERED'] as const) {
      const own = new HeldWrite(scene, INITIATOR, attribute);
      assert.equal((await own.finish()).status, ScsiStatus.GOOD);
    }
    for (const each of others) assert.equal((await each.finish()).status, ScsiStatus.GOOD);
  });

  it('know no ACA', async () => {
    const scene = new Scene();
    assert.equal(await scene.refused(READY, { attribute: 'ACA' }), '05/49/00');
  });

  it('are bounded in number', async () => {
    const scene = new Scene();
    const held = new HeldWrite(scene, INITIATOR, 'ORDERED');
    const waiting = Array.from({ length: MAX_TASKS - 1 }, () =>
      scene.target.execute(readyCommand()),
    );
    assert.equal((await scene.target.execute(readyCommand())).status, ScsiStatus.TASK_SET_FULL);
    await held.finish();
    const results = await Promise.all(waiting);
    assert.ok(results.every(({ status }) => status === ScsiStatus.GOOD));
    await scene.good(READY);
  });
});

function readyCommand(): ScsiCommand {
  return {
    initiatorPort: INITIATOR,
    lun: LUN_0,
    cdb: cdb('00 00 00 00 00 00'),
    attribute: 'SIMPLE',
    dataOutBytes: 0,
    dataInBytes: 0,
    pull: () => assert.fail('there is no data'),
    push: () => assert.fail('there is no data'),
    abort: new AbortController(),
  };
}

describe('SCSI: task management', () => {
  it('aborts a command by its own controller: nothing is written or answered', async () => {
    const scene = new Scene();
    const write = new HeldWrite(scene);
    await settled();
    write.abort.abort();
    const { status, isAborted } = await write.result;
    assert.deepEqual([status, isAborted], [ScsiStatus.TASK_ABORTED, true]);
    assert.equal(scene.pool.freeCount, scene.pool.chunkCount);
    assert.equal((await scene.good(cdb16(0x88, 0, 1)))[0], 0);
  });

  it('aborts commands that wait for others, or for memory', async () => {
    const scene = new Scene({ chunks: 1 });
    const first = new HeldWrite(scene, INITIATOR, 'ORDERED');
    const second = new HeldWrite(scene);
    const third = new HeldWrite(scene);
    await settled();
    second.abort.abort();
    assert.equal((await first.finish()).status, ScsiStatus.GOOD);
    assert.equal((await second.result).isAborted, true);
    assert.equal((await third.finish()).status, ScsiStatus.GOOD);
    const held = new HeldWrite(scene);
    await settled();
    const starved = new HeldWrite(scene);
    await settled();
    assert.equal(starved.hasStarted, false);
    starved.abort.abort();
    assert.equal((await starved.result).isAborted, true);
    await held.finish();
  });

  for (const what of ['ABORT TASK SET', 'CLEAR TASK SET'] as const) {
    it(`${what} is for the commands of the nexus, which has a task set of its own`, async () => {
      const scene = new Scene();
      const own = new HeldWrite(scene);
      const others = new HeldWrite(scene, OTHER);
      await settled();
      const answer = await scene.target.manage(what, INITIATOR, LUN_0);
      assert.equal(answer, 'FUNCTION COMPLETE');
      assert.equal((await own.result).isAborted, true);
      assert.equal((await others.finish()).status, ScsiStatus.GOOD);
      await scene.good(READY, { from: OTHER });
    });
  }

  for (const reset of ['LOGICAL UNIT RESET', 'TARGET WARM RESET', 'TARGET COLD RESET'] as const) {
    it(`${reset} aborts all, takes changes back, and tells the others`, async () => {
      const scene = new Scene();
      const held = [INITIATOR, OTHER].map((from) => new HeldWrite(scene, from));
      await settled();
      assert.ok(held.every(({ hasStarted }) => hasStarted));
      scene.unit.modePages.set(0x0a, cdb('0a 0a 20 10 08 40 00 00 ff ff 00 00'));
      await scene.good('1b 00 00 00 00 00');
      const answer = await scene.target.manage(reset, INITIATOR, LUN_0);
      assert.equal(answer, 'FUNCTION COMPLETE');
      const [own, others] = await Promise.all(held.map(({ result }) => result));
      assert.deepEqual([own!.status, own!.isAborted], [ScsiStatus.TASK_ABORTED, true]);
      assert.deepEqual([others!.status, others!.isAborted], [ScsiStatus.TASK_ABORTED, false]);
      for (const from of [INITIATOR, OTHER]) {
        assert.equal(await scene.refused(READY, { from }), '06/29/03');
        await scene.good(READY, { from });
      }
      assert.equal(scene.unit.modePages.isWriteProtected, false);
    });
  }

  it('refuses LUNs that are not there, and ACA', async () => {
    const { target } = new Scene();
    const lun = Uint8Array.of(0, 7, 0, 0, 0, 0, 0, 0);
    const answer = await target.manage('LOGICAL UNIT RESET', INITIATOR, lun);
    assert.equal(answer, 'INCORRECT LOGICAL UNIT NUMBER');
    assert.equal(await target.manage('CLEAR ACA', INITIATOR, LUN_0), 'FUNCTION NOT SUPPORTED');
  });

  it('a lost nexus takes its commands with it, and a new one starts afresh', async () => {
    const scene = new Scene();
    const own = new HeldWrite(scene);
    const others = new HeldWrite(scene, OTHER);
    await settled();
    scene.unit.attentions.raise(INITIATOR, 'RESET_OCCURRED');
    await scene.target.nexusLost(INITIATOR);
    assert.equal((await own.result).isAborted, true);
    assert.equal((await others.finish()).status, ScsiStatus.GOOD);
    scene.target.nexusOpened(INITIATOR);
    await scene.good(READY);
  });

  it('unit attentions come in their order, each once, and not for INQUIRY', async () => {
    const scene = new Scene();
    const { attentions } = scene.unit;
    attentions.raise(OTHER, 'MODE_PARAMETERS_CHANGED');
    attentions.raise(OTHER, 'RESERVATIONS_RELEASED');
    attentions.raise(OTHER, 'MODE_PARAMETERS_CHANGED');
    await scene.good('12 00 00 00 60 00', { from: OTHER });
    await scene.good('a0 00 00 00 00 00 00 00 00 ff 00 00', { from: OTHER });
    assert.equal(await scene.refused(cdb16(0x88, 0, 1), { from: OTHER }), '06/2a/01');
    assert.equal(await scene.refused(cdb16(0x88, 0, 1), { from: OTHER }), '06/2a/04');
    await scene.good(cdb16(0x88, 0, 1), { from: OTHER });
  });
});
