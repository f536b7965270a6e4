// Full feature phase of a target: order, window, data, task management, text, logout, and faults.
import assert from 'node:assert/strict';

import { parseText, REJECT_REASON, RESERVED_TAG, TASK_FUNCTION, TASK_RESPONSE } from './formats.js';
import { unhandledErrors } from '../../../../../support/unhandled-errors.js';
import { DISCOVERY_KEYS, INITIATOR, Peer, PORTAL, Scene, settle, TARGET } from './scene.js';

const PORT = `${INITIATOR},i,0x00023d000001`;

async function loggedIn(scene = new Scene()): Promise<Peer> {
  const peer = new Peer(scene);
  await peer.logIn();
  return peer;
}

async function discovering(scene = new Scene()): Promise<Peer> {
  const peer = new Peer(scene);
  peer.login(DISCOVERY_KEYS);
  await settle();
  return peer;
}

const tagsOf = ({ scene }: Peer): number[] =>
  scene.disk.executing.map(({ command }) => (command as unknown as TaskLike).initiatorTaskTag);
interface TaskLike {
  readonly initiatorTaskTag: number;
}

describe('iSER target: commands', () => {
  it('executes a command, and answers it with status, residual and sense', async () => {
    const peer = await loggedIn();
    const cdb = Uint8Array.of(0x28, 0, 0, 0, 0, 9);
    peer.command(5, { read: true, expectedDataTransferLength: 1024, cdb, attribute: 2 });
    const [executing] = peer.scene.disk.executing;
    assert.ok(executing !== undefined);
    const { command } = executing;
    assert.equal(command.initiatorPort, PORT);
    assert.deepEqual([command.dataInBytes, command.dataOutBytes], [1024, 0]);
    assert.deepEqual(command.cdb.subarray(0, 6), cdb);
    assert.equal(command.attribute, 'ORDERED');
    await command.push(0, new Uint8Array(512));
    assert.deepEqual(peer.wire.moves, ['put 5 0 512']);
    const sense = Uint8Array.of(0x70, 0, 5);
    executing.end({ status: 2, sense, residual: { kind: 'underflow', bytes: 512 } });
    await settle();
    const { header, data } = peer.last('scsiResponse');
    assert.deepEqual([header.initiatorTaskTag, header.status, header.statSn], [5, 2, 2]);
    assert.deepEqual([header.underflow, header.overflow, header.residualCount], [true, false, 512]);
    assert.deepEqual([...data], [0, 3, 0x70, 0, 5]);
  });

  it('has data of a write from the command itself, and fetches the rest', async () => {
    const peer = await loggedIn();
    const immediate = new Uint8Array(300).fill(7);
    peer.command(5, { write: true, expectedDataTransferLength: 1024 }, immediate);
    immediate.fill(0);
    const into = new Uint8Array(512);
    const command = peer.scene.disk.executing[0]?.command;
    await command?.pull(0, into.subarray(0, 200));
    assert.deepEqual(peer.wire.moves, []);
    await command?.pull(200, into.subarray(200));
    assert.deepEqual(peer.wire.moves, ['get 5 300 212']);
    assert.ok(into.subarray(0, 300).every((byte) => byte === 7));
    assert.ok(into.subarray(300).every((byte) => byte === 0xee));
  });

  it('delivers in the order of CmdSN; immediate ones at once', async () => {
    const peer = await loggedIn();
    const send = (tag: number, cmdSn: number, immediate = false): void =>
      peer.send('scsiCommand', { initiatorTaskTag: tag, cmdSn, immediate, final: true });
    send(3, 9);
    send(2, 8);
    assert.deepEqual(tagsOf(peer), []);
    send(9, 7, true);
    assert.deepEqual(tagsOf(peer), [9]);
    send(1, 7);
    assert.deepEqual(tagsOf(peer), [9, 1, 2, 3]);
  });

  it('ignores what is outside of the window, and what has come before', async () => {
    const peer = await loggedIn();
    const send = (tag: number, cmdSn: number): void =>
      peer.send('scsiCommand', { initiatorTaskTag: tag, cmdSn, final: true });
    send(1, 7);
    send(2, 7);
    send(3, 6);
    send(4, 11);
    send(5, 10);
    send(6, 10);
    assert.deepEqual(tagsOf(peer), [1]);
    assert.equal(peer.sent.length, 1, 'without a word');
    send(7, 8);
    send(8, 9);
    assert.deepEqual(tagsOf(peer), [1, 7, 8, 5]);
  });

  it('closes the window when all places are taken, and opens it by answers', async () => {
    const peer = await loggedIn();
    for (let tag = 1; tag <= 4; tag++) peer.command(tag);
    const windowOf = (): number[] => {
      peer.send('nopOut', { immediate: true, initiatorTaskTag: 99, cmdSn: peer.cmdSn });
      const { expCmdSn, maxCmdSn } = peer.last('nopIn').header;
      return [expCmdSn, maxCmdSn];
    };
    assert.deepEqual(windowOf(), [11, 10]);
    peer.command(5);
    assert.equal(tagsOf(peer).length, 4, 'outside of the window');
    peer.scene.disk.executing[0]?.end();
    await settle();
    assert.deepEqual(peer.last('scsiResponse').header.maxCmdSn, 11);
    assert.deepEqual(windowOf(), [11, 11]);
  });

  it('comes round at 2^32', async () => {
    const peer = new Peer(new Scene());
    peer.cmdSn = 0xffff_fffe;
    await peer.logIn();
    for (const cmdSn of [0xffff_fffe, 0xffff_ffff, 0, 1]) {
      peer.send('scsiCommand', { initiatorTaskTag: cmdSn, cmdSn, final: true });
      // The highest tag is reserved.
      if (cmdSn === 0xffff_ffff) assert.equal(peer.last('reject').header.reason, 9);
    }
    assert.deepEqual(tagsOf(peer), [0xffff_fffe, 0, 1]);
  });

  it('tells of a device server that fails at the end of a session, which ends', async () => {
    for (const end of ['lost', 'logged out'] as const) {
      const peer = await loggedIn();
      const { disk, failures, node } = peer.scene;
      disk.nexusLost = () => Promise.reject(new Error('no nexus'));
      const errors = await unhandledErrors(async () => {
        if (end === 'lost') peer.connection.close('lost');
        else peer.send('logoutRequest', { immediate: true, initiatorTaskTag: 9, reason: 0 });
        await settle();
        peer.connection.close('the transport has ended');
        await peer.connection.ended;
      });
      assert.deepEqual([errors, failures.map(String)], [[], ['Error: no nexus']], end);
      assert.equal(node.connectionCount, 0);
    }
  });

  it('ends a login that the device server fails, and tells of it', async () => {
    const peer = new Peer(new Scene());
    peer.scene.disk.nexusOpened = () => {
      throw new Error('no nexus');
    };
    assert.deepEqual(await unhandledErrors(async () => void (await peer.logIn())), []);
    await peer.connection.ended;
    assert.deepEqual(peer.scene.failures.map(String), ['Error: no nexus']);
  });

  it('answers INTERNAL TARGET FAILURE when the device server fails, and goes on', async () => {
    const peer = await loggedIn();
    peer.command(5);
    peer.scene.disk.executing[0]?.fail(new Error('a mistake'));
    await settle();
    const { header, data } = peer.last('scsiResponse');
    assert.equal(header.status, 2);
    assert.deepEqual([data[4], data[14]], [4, 0x44]);
    assert.equal(peer.scene.failures.length, 1);
    assert.equal(peer.connection.state, 'LOGGED_IN');
  });

  it('has a CDB of more than 16 bytes', async () => {
    const peer = await loggedIn();
    const ahs = Uint8Array.of(0, 5, 1, 0, 0xaa, 0xbb, 0xcc, 0xdd);
    peer.command(5, { totalAhsLength: 2, dataSegmentLength: 0 }, ahs);
    const cdb = peer.scene.disk.executing[0]?.command.cdb;
    assert.deepEqual([cdb?.length, cdb?.[16], cdb?.[19]], [20, 0xaa, 0xdd]);
  });

  describe('rejects', () => {
    const goesOn: readonly [string, number, object][] = [
      ['a tag in use', REJECT_REASON.TASK_IN_PROGRESS, { initiatorTaskTag: 1 }],
      ['a reserved tag', REJECT_REASON.INVALID_PDU_FIELD, { initiatorTaskTag: RESERVED_TAG }],
      ['an attribute above 4', REJECT_REASON.INVALID_PDU_FIELD, { attribute: 5 }],
      ['a read that writes', REJECT_REASON.INVALID_PDU_FIELD, { read: true, write: true }],
    ];
    for (const [what, reason, values] of goesOn) {
      it(`${what}, and goes on`, async () => {
        const peer = await loggedIn();
        peer.command(1);
        peer.command(2, values);
        const { header, data } = peer.last('reject');
        assert.equal(header.reason, reason);
        assert.equal(data.length, 48);
        assert.equal(data[0], 1);
        assert.equal(peer.connection.state, 'LOGGED_IN');
        peer.command(3);
        assert.deepEqual(tagsOf(peer), [1, 3], 'its CmdSN has been used');
        assert.equal(header.maxCmdSn, 11, 'and its place is free');
      });
    }

    const ends: readonly [string, object, number][] = [
      ['unsolicited data to come', { final: false, write: true }, 0],
      ['data of a read', { read: true, expectedDataTransferLength: 4096 }, 100],
      ['more data than expected', { write: true, expectedDataTransferLength: 50 }, 51],
      ['more than a first burst', { write: true, expectedDataTransferLength: 9000 }, 4097],
    ];
    for (const [what, values, dataBytes] of ends) {
      it(`${what}, and ends the session`, async () => {
        const scene = new Scene();
        const other = new Peer(scene);
        await other.logIn();
        const peer = new Peer(scene);
        peer.login([], {});
        const hostile = await loggedIn(new Scene());
        hostile.command(1);
        hostile.command(2, values, new Uint8Array(dataBytes));
        assert.equal(hostile.last('reject').header.reason, REJECT_REASON.PROTOCOL_ERROR);
        assert.equal(hostile.wire.isTerminated, true);
        await hostile.connection.ended;
        assert.deepEqual(hostile.scene.disk.executing, []);
        assert.equal(other.connection.state, 'LOGGED_IN');
      });
    }

    it('immediate data where ImmediateData is No', async () => {
      const peer = new Peer(new Scene());
      peer.login([]);
      const strict = new Peer(
        new Scene({ wishes: { rdma: { RDMAExtensions: 'Yes', ImmediateData: 'No' }, tcp: {} } }),
      );
      await strict.logIn();
      strict.command(1, { write: true, expectedDataTransferLength: 512 }, new Uint8Array(512));
      assert.equal(strict.last('reject').header.reason, REJECT_REASON.PROTOCOL_ERROR);
    });

    it('immediate commands without end', async () => {
      const peer = await loggedIn();
      for (let tag = 1; tag <= 17; tag++) {
        peer.send('scsiCommand', { initiatorTaskTag: tag, cmdSn: 7, immediate: true, final: true });
      }
      const { reason } = peer.last('reject').header;
      assert.equal(reason, REJECT_REASON.IMMEDIATE_COMMAND_REJECT);
      assert.equal(tagsOf(peer).length, 16);
    });
  });
});

describe('iSER target: what else comes', () => {
  it('answers a ping with its data, and one that wants no answer with none', async () => {
    const peer = await loggedIn();
    peer.send('nopOut', { immediate: true, initiatorTaskTag: 5, cmdSn: 7 }, Uint8Array.of(1, 2, 3));
    const { header, data } = peer.last('nopIn');
    assert.deepEqual([header.initiatorTaskTag, header.targetTransferTag], [5, RESERVED_TAG]);
    assert.deepEqual([...data], [1, 2, 3]);
    const before = peer.sent.length;
    peer.send('nopOut', { immediate: true, initiatorTaskTag: RESERVED_TAG, cmdSn: 7 });
    assert.equal(peer.sent.length, before);
  });

  it('asks an initiator that is silent, without a StatSN, and ends when it stays so', async () => {
    const scene = new Scene({ keepAliveMs: 1000 });
    const peer = await loggedIn(scene);
    scene.time.pass(1000);
    const asked = peer.last('nopIn').header;
    assert.equal(asked.initiatorTaskTag, RESERVED_TAG);
    assert.notEqual(asked.targetTransferTag, RESERVED_TAG);
    peer.send('nopOut', {
      immediate: true,
      initiatorTaskTag: RESERVED_TAG,
      targetTransferTag: 1,
      cmdSn: 7,
    });
    scene.time.pass(1500);
    assert.equal(peer.connection.state, 'LOGGED_IN');
    scene.time.pass(600);
    assert.equal(peer.last('nopIn').header.statSn, asked.statSn);
    scene.time.pass(1000);
    assert.equal(peer.wire.isTerminated, true);
    assert.equal((await peer.connection.ended).reason, 'the initiator does not answer');
    assert.equal(scene.time.pending, 0);
  });

  describe('task management', () => {
    const manage = async (peer: Peer, values: object): Promise<number> => {
      const common = { initiatorTaskTag: 50, immediate: true, cmdSn: peer.cmdSn };
      peer.send('taskManagementRequest', { ...common, ...values });
      await settle();
      return peer.last('taskManagementResponse').header.response;
    };

    it('aborts a task, which has ended before the function is answered', async () => {
      const peer = await loggedIn();
      peer.command(1);
      peer.command(2);
      peer.scene.disk.endsAborted = false;
      const [first] = peer.scene.disk.executing;
      const common = { initiatorTaskTag: 50, immediate: true, cmdSn: peer.cmdSn };
      const values = { function: TASK_FUNCTION.ABORT_TASK, referencedTaskTag: 1, refCmdSn: 7 };
      peer.send('taskManagementRequest', { ...common, ...values });
      await settle();
      assert.equal(first?.command.abort.signal.aborted, true);
      assert.equal(peer.sent.length, 1);
      first?.end({ isAborted: true });
      await settle();
      const { header } = peer.last('taskManagementResponse');
      assert.equal(header.response, TASK_RESPONSE.COMPLETE);
      assert.deepEqual(tagsOf(peer), [2]);
    });

    it('tells a task that has been answered from one that has not come', async () => {
      const peer = await loggedIn();
      const func = { function: TASK_FUNCTION.ABORT_TASK, referencedTaskTag: 77 };
      assert.equal(await manage(peer, { ...func, refCmdSn: 3 }), TASK_RESPONSE.TASK_DOES_NOT_EXIST);
      // The command never comes: the ones behind it are not held up.
      assert.equal(await manage(peer, { ...func, refCmdSn: 7 }), TASK_RESPONSE.COMPLETE);
      peer.send('scsiCommand', { initiatorTaskTag: 8, cmdSn: 8, final: true });
      assert.deepEqual(tagsOf(peer), [8]);
    });

    it('leaves other functions to the device server', async () => {
      const peer = await loggedIn();
      const { disk } = peer.scene;
      const functions = {
        'ABORT TASK SET': TASK_FUNCTION.ABORT_TASK_SET,
        'CLEAR ACA': TASK_FUNCTION.CLEAR_ACA,
        'CLEAR TASK SET': TASK_FUNCTION.CLEAR_TASK_SET,
        'LOGICAL UNIT RESET': TASK_FUNCTION.LOGICAL_UNIT_RESET,
        'TARGET WARM RESET': TASK_FUNCTION.TARGET_WARM_RESET,
        'TARGET COLD RESET': TASK_FUNCTION.TARGET_COLD_RESET,
      };
      for (const value of Object.values(functions)) {
        assert.equal(await manage(peer, { function: value }), TASK_RESPONSE.COMPLETE);
      }
      assert.deepEqual(
        disk.managed,
        Object.keys(functions).map((name) => `${name} by ${PORT}`),
      );
      disk.answer = 'INCORRECT LOGICAL UNIT NUMBER';
      assert.equal(await manage(peer, { function: 5 }), TASK_RESPONSE.LUN_DOES_NOT_EXIST);
      disk.answer = 'FUNCTION NOT SUPPORTED';
      assert.equal(await manage(peer, { function: 3 }), TASK_RESPONSE.NOT_SUPPORTED);
      assert.equal(await manage(peer, { function: 8 }), TASK_RESPONSE.REASSIGN_NOT_SUPPORTED);
      assert.equal(await manage(peer, { function: 99 }), TASK_RESPONSE.NOT_SUPPORTED);
    });
  });

  describe('text', () => {
    const ask = (peer: Peer, text: string, values: object = {}): Map<string, string> => {
      const common = { immediate: true, initiatorTaskTag: 3, cmdSn: peer.cmdSn };
      peer.send('textRequest', { ...common, ...values }, Buffer.from(text));
      return new Map(parseText(peer.last('textResponse').data));
    };

    it('tells all targets in discovery', async () => {
      const scene = new Scene();
      scene.node.addPortal('[2001:db8::1]:3260', true);
      scene.node.addPortal('192.0.2.1:3261', false);
      const peer = await discovering(scene);
      ask(peer, 'SendTargets=All\0');
      assert.deepEqual(parseText(peer.last('textResponse').data), [
        ['TargetName', TARGET],
        ['TargetAddress', `${PORTAL},1`],
        ['TargetAddress', '[2001:db8::1]:3260,1'],
      ]);
      assert.equal(ask(peer, 'SendTargets=iqn.2026-01.org.example:other\0').size, 0);
    });

    it('tells the own target in a normal session', async () => {
      const peer = await loggedIn();
      assert.equal(ask(peer, 'SendTargets=\0').get('TargetName'), TARGET);
      assert.equal(ask(peer, 'SendTargets=All\0').get('SendTargets'), 'Reject');
      assert.equal(ask(peer, 'X-com.example=1\0').get('X-com.example'), 'NotUnderstood');
      assert.equal(ask(peer, 'MaxBurstLength=512\0').get('MaxBurstLength'), 'Reject');
      assert.equal(ask(peer, 'MaxRecvDataSegmentLength=1024\0').size, 0);
      assert.equal(peer.wire.segmentBytes, 1024);
    });

    it('gives a long answer in parts', async () => {
      const scene = new Scene();
      for (let port = 1; port <= 300; port++) scene.node.addPortal(`192.0.2.9:${port}`, true);
      const peer = await discovering(scene);
      const parts: Buffer[] = [];
      let tag = RESERVED_TAG;
      do {
        const text = tag === RESERVED_TAG ? 'SendTargets=All\0' : '';
        const common = { immediate: true, initiatorTaskTag: 3, cmdSn: peer.cmdSn };
        peer.send('textRequest', { ...common, targetTransferTag: tag }, Buffer.from(text));
        const { header, data } = peer.last('textResponse');
        assert.equal(header.continue, !header.final);
        assert.ok(data.length <= 8192);
        parts.push(Buffer.from(data));
        tag = header.targetTransferTag;
      } while (tag !== RESERVED_TAG);
      assert.equal(parts.length, 2);
      assert.equal(parseText(Buffer.concat(parts)).length, 302);
    });

    it('rejects a transfer tag that it has not given', async () => {
      const peer = await discovering();
      const common = { immediate: true, initiatorTaskTag: 3, cmdSn: peer.cmdSn };
      peer.send('textRequest', { ...common, targetTransferTag: 5 });
      assert.equal(peer.last('reject').header.reason, REJECT_REASON.INVALID_PDU_FIELD);
    });
  });

  it('has text and logout alone in discovery', async () => {
    const peer = await discovering();
    for (const type of ['nopOut', 'scsiCommand', 'taskManagementRequest'] as const) {
      peer.send(type, { immediate: true, initiatorTaskTag: 3, cmdSn: 7 });
      assert.equal(peer.last('reject').header.reason, REJECT_REASON.COMMAND_NOT_SUPPORTED);
    }
    assert.equal(peer.connection.state, 'LOGGED_IN');
    assert.deepEqual(peer.scene.disk.nexuses, []);
  });
});

describe('iSER target: the end of a session', () => {
  const logout = { immediate: true, initiatorTaskTag: 4, cmdSn: 7 };

  it('answers a logout when no command is in progress, and waits for the peer', async () => {
    const peer = await loggedIn();
    peer.command(1);
    peer.scene.disk.endsAborted = false;
    peer.send('logoutRequest', logout);
    await settle();
    assert.equal(peer.connection.state, 'IN_LOGOUT');
    assert.equal(peer.sent.length, 1);
    peer.command(2);
    assert.deepEqual(tagsOf(peer), [1]);
    peer.scene.disk.executing[0]?.end({ isAborted: true });
    await settle();
    assert.equal(peer.last('logoutResponse').header.response, 0);
    // It may come again at once, and finds nothing reserved by the session that it has ended.
    assert.deepEqual(peer.scene.disk.nexuses, [`+${PORT}`, `-${PORT}`]);
    assert.equal(peer.wire.isTerminated, false);
    peer.connection.transportEnded('the peer has gone');
    assert.equal((await peer.connection.ended).isOrderly, true);
    assert.deepEqual(peer.scene.disk.nexuses, [`+${PORT}`, `-${PORT}`]);
    assert.equal(peer.scene.time.pending, 0);
  });

  it('answers a reset that came in front of a logout, and then the logout', async () => {
    const peer = await loggedIn();
    let complete = (): void => undefined;
    peer.scene.disk.manage = () =>
      new Promise((resolve) => (complete = () => resolve('FUNCTION COMPLETE')));
    const reset = { function: TASK_FUNCTION.LOGICAL_UNIT_RESET, initiatorTaskTag: 3 };
    peer.send('taskManagementRequest', { ...reset, immediate: true, cmdSn: 7 });
    peer.send('logoutRequest', logout);
    await settle();
    assert.equal(peer.connection.state, 'IN_LOGOUT');
    assert.equal(peer.sent.length, 1);
    complete();
    await settle();
    const types = peer.sent.slice(1).map(({ type }) => type);
    assert.deepEqual(types, ['taskManagementResponse', 'logoutResponse']);
  });

  it('does not wait for a function that does not end', async () => {
    const peer = await loggedIn();
    peer.scene.disk.manage = () => new Promise(() => {});
    const reset = { function: TASK_FUNCTION.LOGICAL_UNIT_RESET, initiatorTaskTag: 3 };
    peer.send('taskManagementRequest', { ...reset, immediate: true, cmdSn: 7 });
    peer.send('logoutRequest', logout);
    await settle();
    peer.scene.time.pass(5000);
    assert.equal(peer.wire.isTerminated, true);
    assert.equal((await peer.connection.ended).isOrderly, true);
  });

  it('ends a connection whose initiator has logged out and stays', async () => {
    const peer = await loggedIn();
    peer.send('logoutRequest', logout);
    await settle();
    peer.scene.time.pass(5000);
    assert.equal(peer.wire.isTerminated, true);
    assert.equal((await peer.connection.ended).isOrderly, true);
  });

  it('refuses a logout that is not of this connection, and goes on', async () => {
    const peer = await loggedIn();
    const answers = [
      [{ reason: 1, cid: 9 }, 1],
      [{ reason: 2 }, 2],
    ] as const;
    for (const [values, response] of answers) {
      peer.send('logoutRequest', { ...logout, ...values });
      assert.equal(peer.last('logoutResponse').header.response, response);
    }
    peer.send('logoutRequest', { ...logout, reason: 9 });
    assert.equal(peer.last('reject').header.reason, REJECT_REASON.INVALID_PDU_FIELD);
    assert.equal(peer.connection.state, 'LOGGED_IN');
  });

  it('asks initiators to log out when the target is closed; commands go on meanwhile', async () => {
    const scene = new Scene();
    const peer = await loggedIn(scene);
    const early = new Peer(scene);
    const closed = scene.node.close(7);
    const { header } = peer.last('asyncMessage');
    assert.deepEqual([header.event, header.parameter3], [1, 7]);
    assert.equal(early.wire.isTerminated, true);
    peer.command(1);
    scene.disk.executing[0]?.end();
    await settle();
    assert.equal(peer.last('scsiResponse').header.initiatorTaskTag, 1);
    peer.send('logoutRequest', { ...logout, cmdSn: 8 });
    await settle();
    peer.connection.transportEnded('gone');
    await closed;
    const late = new Peer(scene);
    assert.equal(late.wire.isTerminated, true);
  });

  it('ends what does not log out in time', async () => {
    const scene = new Scene();
    const peer = await loggedIn(scene);
    const closed = scene.node.close(7);
    scene.time.pass(7000);
    assert.equal(peer.wire.isTerminated, true);
    await closed;
  });

  it('ends all at once with 0 seconds', async () => {
    const scene = new Scene();
    const peer = await loggedIn(scene);
    await scene.node.close(0);
    assert.equal(peer.wire.isTerminated, true);
  });

  const OUT_OF_ORDER = ['loginRequest', 'dataOut'] as const;
  for (const type of OUT_OF_ORDER) {
    it(`rejects a ${type} in full feature phase, and ends`, async () => {
      const peer = await loggedIn();
      peer.send(type, { initiatorTaskTag: 4 });
      assert.equal(peer.last('reject').header.reason, REJECT_REASON.PROTOCOL_ERROR);
      assert.equal(peer.wire.isTerminated, true);
    });
  }

  it('rejects SNACK and opcodes that are none, and goes on', async () => {
    const peer = await loggedIn();
    peer.send('snackRequest', { initiatorTaskTag: 4 });
    assert.equal(peer.last('reject').header.reason, REJECT_REASON.SNACK_REJECT);
    const unknown = new Uint8Array(48).fill(0);
    unknown[0] = 0x1c;
    peer.connection.receive(unknown);
    assert.equal(peer.last('reject').header.reason, REJECT_REASON.COMMAND_NOT_SUPPORTED);
    assert.equal(peer.connection.state, 'LOGGED_IN');
  });
});
