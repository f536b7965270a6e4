import assert from 'node:assert/strict';

import {
  CONNECTION_EVENTS,
  CONNECTION_STATES,
  IscsiError,
  Tags,
  TRANSITIONS,
} from '../../../../../../../samples/ulp/iser/session/initiator/index.js';
import * as wire from '../../../../../../../samples/ulp/iser/wire/index.js';
import { LUN, Scene } from './scene.js';

const { GOOD, CHECK_CONDITION } = wire.SCSI_STATUS;
const bytes = (length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, at) => (at * 7) & 0xff);

function dataIn(scene: Scene, tag: number, fields: object, data: Uint8Array): void {
  const hasStatus = 'hasStatus' in fields;
  const header = wire.dataIn.make({
    initiatorTaskTag: tag,
    dataSegmentLength: data.length,
    ...scene.numbers(hasStatus),
    ...fields,
  });
  scene.answer(header.bytes, data);
}

describe('full feature phase of an initiator', () => {
  it('commands carry CmdSN in order, within the window', () => {
    const scene = new Scene();
    scene.logIn();
    const tasks = Array.from({ length: 6 }, () => scene.submit());
    const sent = scene.takeSent();
    assert.deepEqual(
      sent.map((pdu) => pdu.type === 'scsiCommand' && pdu.header.cmdSn),
      [5, 6, 7, 8],
    );
    assert.equal(scene.session.waiting, 2);
    scene.respond(tasks[1]!.task.tag);
    assert.equal(scene.one().type, 'scsiCommand');
    assert.deepEqual(tasks[1]!.outcomes[0], {
      kind: 'answered',
      status: GOOD,
      sense: undefined,
      transferredBytes: 0,
    });
    assert.equal(tasks[0]!.outcomes.length, 0);
  });

  it('CmdSN comes round', () => {
    const scene = new Scene({ login: { initialCmdSn: 0xffff_fffe } });
    scene.expCmdSn = 0xffff_fffe;
    scene.connect();
    scene.answerLogin([], true, { maxCmdSn: 1 });
    for (let i = 0; i < 5; i++) scene.submit();
    const numbers = scene.takeSent().map((pdu) => pdu.type === 'scsiCommand' && pdu.header.cmdSn);
    assert.deepEqual(numbers, [0xffff_fffe, 0xffff_ffff, 0, 1]);
  });

  it('a closed window sends nothing but immediate requests', () => {
    const scene = new Scene();
    scene.windowSize = 0;
    scene.logIn();
    scene.submit();
    assert.equal(scene.sent.length, 0);
    scene.session.manage(wire.TASK_FUNCTION.LOGICAL_UNIT_RESET, LUN, () => undefined);
    const request = scene.one();
    assert(request.type === 'taskManagementRequest' && request.header.immediate);
  });

  for (const [initialR2T, immediateData, immediate, unsolicited] of [
    ['Yes', 'No', 0, 0],
    ['Yes', 'Yes', 1024, 0],
    ['No', 'No', 0, 2048],
    ['No', 'Yes', 1024, 1024],
  ] as const) {
    it(`InitialR2T=${initialR2T}, ImmediateData=${immediateData}: data of a write`, () => {
      const scene = new Scene();
      scene.logIn([
        ['InitialR2T', initialR2T],
        ['ImmediateData', immediateData],
        ['FirstBurstLength', '2048'],
        ['MaxBurstLength', '4096'],
        ['MaxRecvDataSegmentLength', '1024'],
      ]);
      const out = bytes(8192);
      const { task, outcomes } = scene.submit({ dataOut: out });
      const [command, ...rest] = scene.takeSent();
      assert(command?.type === 'scsiCommand');
      assert.equal(command.data.length, immediate);
      assert.equal(command.header.final, unsolicited === 0);
      assert.equal(command.header.expectedDataTransferLength, 8192);
      assert.equal(command.outgoing.unsolicitedBytes, immediate + unsolicited);
      const there = new Uint8Array(8192);
      there.set(command.data);
      const place = (pdus: readonly (typeof command | (typeof rest)[number])[]): number => {
        let moved = 0;
        for (const pdu of pdus) {
          assert(pdu.type === 'dataOut');
          assert(pdu.data.length <= 1024);
          there.set(pdu.data, pdu.header.bufferOffset);
          moved += pdu.data.length;
        }
        const last = pdus.at(-1);
        assert(last === undefined || (last.type === 'dataOut' && last.header.final));
        return moved;
      };
      assert.equal(place(rest), unsolicited);
      for (let at = immediate + unsolicited, r2tSn = 0; at < 8192; r2tSn++) {
        const length = Math.min(4096, 8192 - at);
        const header = wire.r2t.make({
          initiatorTaskTag: task.tag,
          targetTransferTag: r2tSn,
          ...scene.numbers(false),
          r2tSn,
          bufferOffset: at,
          desiredDataTransferLength: length,
        });
        scene.answer(header.bytes);
        assert.equal(place(scene.takeSent()), length);
        at += length;
      }
      assert.deepEqual(there, out);
      scene.respond(task.tag);
      assert.equal(outcomes[0]?.kind, 'answered');
      assert.deepEqual(scene.ends, []);
    });
  }

  it('Data-In fills the memory, and may bring the status', () => {
    const scene = new Scene();
    scene.logIn();
    const into = new Uint8Array(1000);
    const { task, outcomes } = scene.submit({ dataIn: into });
    const data = bytes(1000);
    dataIn(scene, task.tag, { dataSn: 0 }, data.subarray(0, 600));
    const rest = data.subarray(600);
    const last = { dataSn: 1, bufferOffset: 600, final: true, hasStatus: true };
    dataIn(scene, task.tag, last, rest);
    assert.deepEqual(into, data);
    assert.deepEqual(outcomes[0], {
      kind: 'answered',
      status: GOOD,
      sense: undefined,
      transferredBytes: 1000,
    });
    assert.equal(scene.released[0]?.bytes, 1000);
  });

  it('sense and residual of a check condition are told', () => {
    const scene = new Scene({ transport: 'iser' });
    scene.logIn([['RDMAExtensions', 'Yes']]);
    const { task, outcomes } = scene.submit({ dataIn: new Uint8Array(512) });
    const sense = { key: 3, asc: 0x11, ascq: 0, information: 77n };
    const segment = wire.emitSenseSegment(wire.emitFixedSense(sense));
    const fields = { status: CHECK_CONDITION, underflow: true, residualCount: 512 };
    scene.respond(task.tag, fields, segment);
    assert.deepEqual(outcomes, [
      { kind: 'answered', status: CHECK_CONDITION, sense, transferredBytes: 0 },
    ]);
  });

  it('a tag is not used again while its task lives, and not soon after', () => {
    const scene = new Scene({ maxTasks: 3 });
    scene.windowSize = 8;
    scene.logIn();
    const seen = new Set<number>();
    const living = new Map<number, object>();
    for (let i = 0; i < 500; i++) {
      const { task } = scene.submit();
      assert(!living.has(task.tag), 'in use');
      assert(!seen.has(task.tag), 'used before');
      assert.notEqual(task.tag, wire.RESERVED_TAG);
      seen.add(task.tag);
      living.set(task.tag, task);
      if (living.size < 3) continue;
      const [oldest] = [...living.keys()];
      living.delete(oldest!);
      scene.respond(oldest!);
    }
    assert.deepEqual(scene.ends, []);
  });

  it('tags: a limit, a release without a task', () => {
    assert.throws(() => new Tags(0), /must be 1 to 4095/);
    const tags = new Tags<string>(1);
    const tag = tags.take('one')!;
    assert.equal(tags.take('two'), undefined);
    tags.release(tag);
    assert.throws(() => tags.release(tag), /is not in use/);
    assert.notEqual(tags.take('two'), tag);
  });

  it('a ping of the target is answered, a telling one is not', () => {
    const scene = new Scene();
    scene.logIn();
    scene.answer(wire.nopIn.make({ ...scene.numbers(false), targetTransferTag: 9 }).bytes);
    const answer = scene.one();
    assert(answer.type === 'nopOut' && answer.header.immediate);
    assert.equal(answer.header.targetTransferTag, 9);
    assert.equal(answer.header.initiatorTaskTag, wire.RESERVED_TAG);
    scene.answer(wire.nopIn.make(scene.numbers(false)).bytes);
    assert.equal(scene.sent.length, 0);
  });

  it('a silent target is asked, and left when it does not answer', () => {
    const scene = new Scene({ times: { nopIntervalMs: 5000, requestTimeoutMs: 3000 } });
    scene.logIn();
    assert.equal(scene.session.deadlineMs, 6000);
    scene.nowMs = 6000;
    scene.session.tick(6000);
    const ping = scene.one();
    assert(ping.type === 'nopOut');
    const tag = ping.header.initiatorTaskTag;
    scene.answer(wire.nopIn.make({ ...scene.numbers(true), initiatorTaskTag: tag }).bytes);
    assert.equal(scene.ends.length, 0);
    scene.nowMs = 11_000;
    scene.session.tick(11_000);
    assert.equal(scene.one().type, 'nopOut');
    scene.nowMs = 14_000;
    scene.session.tick(14_000);
    assert.equal(scene.ends[0]?.code, 'ISCSI_TIMED_OUT');
  });

  it('a command that is not answered in time is aborted', () => {
    const scene = new Scene({ times: { nopIntervalMs: Infinity } });
    scene.logIn();
    const { task, outcomes } = scene.submit({ timeoutMs: 100 });
    scene.takeSent();
    scene.session.tick(1100);
    const abort = scene.one();
    assert(abort.type === 'taskManagementRequest');
    assert.equal(abort.header.function, wire.TASK_FUNCTION.ABORT_TASK);
    assert.equal(abort.header.referencedTaskTag, task.tag);
    assert.equal(abort.header.refCmdSn, 5);
    const response = wire.taskManagementResponse.make({
      initiatorTaskTag: abort.header.initiatorTaskTag,
      ...scene.numbers(true),
    });
    scene.answer(response.bytes);
    assert.equal(outcomes[0]?.kind, 'aborted');
    assert.equal(scene.session.outstanding, 0);
  });

  it('an abort that comes too late changes nothing; one that waits is not sent', () => {
    const scene = new Scene();
    scene.windowSize = 1;
    scene.logIn();
    const first = scene.submit();
    const second = scene.submit();
    const error = new IscsiError('ISCSI_ABORTED', 'by the test');
    scene.session.abort(second.task, error);
    assert.equal(second.outcomes[0]?.kind, 'aborted');
    scene.session.abort(first.task, error);
    const [, abort] = scene.takeSent();
    assert(abort?.type === 'taskManagementRequest');
    scene.respond(first.task.tag);
    assert.equal(first.outcomes[0]?.kind, 'answered');
    const { initiatorTaskTag } = abort.header;
    const numbers = scene.numbers(true);
    const header = wire.taskManagementResponse.make({ initiatorTaskTag, response: 1, ...numbers });
    scene.answer(header.bytes);
    assert.deepEqual(scene.ends, []);
    assert.equal(first.outcomes.length, 1);
  });

  it('a reset ends the commands before it, of that unit alone', () => {
    const scene = new Scene();
    scene.logIn();
    const here = scene.submit();
    const there = scene.submit({ lun: wire.emitLun(1) });
    let answer: unknown;
    scene.session.manage(wire.TASK_FUNCTION.LOGICAL_UNIT_RESET, LUN, (result) => (answer = result));
    const later = scene.submit();
    const request = scene.takeSent().find(({ type }) => type === 'taskManagementRequest')!;
    const header = wire.taskManagementResponse.make({
      initiatorTaskTag: request.header.initiatorTaskTag,
      ...scene.numbers(true),
    });
    scene.answer(header.bytes);
    assert.equal(answer, wire.TASK_RESPONSE.COMPLETE);
    assert.equal(here.outcomes[0]?.kind, 'aborted');
    assert.equal(there.outcomes.length + later.outcomes.length, 0);
  });

  it('a reject ends its command', () => {
    const scene = new Scene();
    scene.logIn();
    const { outcomes } = scene.submit();
    const { header } = scene.one();
    const made = wire.reject.make({
      reason: wire.REJECT_REASON.COMMAND_NOT_SUPPORTED,
      dataSegmentLength: 48,
      ...scene.numbers(true),
    });
    scene.answer(made.bytes, header.bytes.slice(0, 48));
    assert(outcomes[0]?.kind === 'refused');
    assert.match(outcomes[0].error.message, /opcode 0x1: COMMAND_NOT_SUPPORTED/);
    assert.deepEqual(scene.ends, []);
  });

  it('a logout that the target asks for stops new commands, and is carried out', () => {
    const scene = new Scene();
    scene.logIn();
    const before = scene.submit();
    scene.takeSent();
    const event = wire.ASYNC_EVENT.LOGOUT_REQUEST;
    scene.answer(wire.asyncMessage.make({ event, parameter3: 3, ...scene.numbers(true) }).bytes);
    assert.deepEqual(scene.logoutAsked, [3000]);
    const after = scene.submit();
    assert.equal(scene.sent.length, 0);
    scene.respond(before.task.tag);
    assert.equal(scene.sent.length, 0);
    scene.session.logout();
    const request = scene.one();
    assert(request.type === 'logoutRequest' && request.header.immediate);
    const { initiatorTaskTag } = request.header;
    scene.answer(wire.logoutResponse.make({ initiatorTaskTag, ...scene.numbers(true) }).bytes);
    assert.equal(scene.ends[0]?.code, 'ISCSI_CLOSED');
    assert(after.outcomes[0]?.kind === 'unanswered' && !after.outcomes[0].wasSent);
    assert.equal(scene.session.state, 'FREE');
  });

  it('a lost connection ends every task, once, and tells what was sent', () => {
    const scene = new Scene();
    scene.windowSize = 1;
    scene.logIn();
    const sent = scene.submit();
    const unsent = scene.submit();
    const error = new IscsiError('ISCSI_CONNECTION', 'cut by the test');
    scene.session.lost(error);
    scene.session.lost(error);
    assert.deepEqual(sent.outcomes, [{ kind: 'unanswered', wasSent: true, error }]);
    assert.deepEqual(unsent.outcomes, [{ kind: 'unanswered', wasSent: false, error }]);
    assert.deepEqual(scene.ends, [error]);
  });

  it('SendTargets may come in parts', () => {
    const scene = new Scene();
    scene.logIn();
    let result: unknown;
    scene.session.text([['SendTargets', 'All']], (answer) => (result = answer));
    const first = scene.one();
    assert(first.type === 'textRequest' && first.header.targetTransferTag === wire.RESERVED_TAG);
    const { initiatorTaskTag } = first.header;
    const text = wire.emitText([['TargetName', 'iqn.2026-01.io.test:disk']]);
    const part = (data: Uint8Array, isLast: boolean): void => {
      const header = wire.textResponse.make({
        final: isLast,
        continue: !isLast,
        initiatorTaskTag,
        targetTransferTag: isLast ? wire.RESERVED_TAG : 3,
        dataSegmentLength: data.length,
        ...scene.numbers(true),
      });
      scene.answer(header.bytes, data);
    };
    part(text.subarray(0, 10), false);
    const next = scene.one();
    assert(next.type === 'textRequest' && next.header.targetTransferTag === 3);
    part(text.subarray(10), true);
    assert.deepEqual(result, [['TargetName', 'iqn.2026-01.io.test:disk']]);
  });

  for (const [what, breach] of [
    ['a StatSN that is not the next', (s, tag) => s.respond(tag, { statSn: 999 })],
    [
      'an ExpCmdSN that was never sent',
      (s, tag) => {
        s.expCmdSn = 77;
        s.respond(tag);
      },
    ],
    ['an answer to nothing', (s) => s.respond(0x123)],
    [
      'more residual than was expected',
      (s, tag) => s.respond(tag, { underflow: true, residualCount: 513 }),
    ],
    ['Data-In beyond the memory', (s, tag) => dataIn(s, tag, {}, new Uint8Array(513))],
    ['Data-In out of order', (s, tag) => dataIn(s, tag, { dataSn: 1 }, new Uint8Array(1))],
    ['Data-In at another place', (s, tag) => dataIn(s, tag, { bufferOffset: 1 }, bytes(1))],
    [
      'an R2T for a read',
      (s, tag) =>
        s.answer(
          wire.r2t.make({
            initiatorTaskTag: tag,
            ...s.numbers(false),
            desiredDataTransferLength: 1,
          }).bytes,
        ),
    ],
    ['a Login Response', (s) => s.answer(wire.loginResponse.make(s.numbers(true)).bytes)],
    ['a Reject without a header', (s) => s.answer(wire.reject.make(s.numbers(true)).bytes)],
    [
      'sense that is cut off',
      (s, tag) => s.respond(tag, { status: CHECK_CONDITION }, Uint8Array.of(0, 18, 0x70)),
    ],
  ] as readonly (readonly [string, (scene: Scene, tag: number) => void])[]) {
    it(`${what} ends the session, and no command is lost`, () => {
      const scene = new Scene();
      scene.logIn();
      const { task, outcomes } = scene.submit({ dataIn: new Uint8Array(512) });
      breach(scene, task.tag);
      assert.equal(scene.ends.length, 1);
      assert.equal(scene.ends[0]?.code, 'ISCSI_PROTOCOL');
      assert.equal(outcomes.length, 1);
      assert.equal(outcomes[0]?.kind, 'unanswered');
    });
  }

  for (const [what, request] of [
    ['a LUN of 7 bytes', { lun: new Uint8Array(7) }],
    ['a CDB of 17 bytes', { cdb: new Uint8Array(17) }],
    ['a bidirectional command', { dataIn: bytes(1), dataOut: bytes(1) }],
  ] as const) {
    it(`${what} is refused before it is sent`, () => {
      const scene = new Scene();
      scene.logIn();
      assert.throws(() => scene.submit(request), { code: 'ISCSI_INVALID_PARAMETER' });
      assert.equal(scene.sent.length, 0);
    });
  }
});

describe('states of an initiator', () => {
  it('every event of every state leads to a state, or cannot happen', () => {
    for (const state of CONNECTION_STATES) {
      for (const event of CONNECTION_EVENTS) {
        const to = TRANSITIONS[state][event];
        assert(to === undefined || CONNECTION_STATES.includes(to));
        if (state !== 'FREE') assert.equal(TRANSITIONS[state].lost, 'FREE');
      }
    }
  });
});
