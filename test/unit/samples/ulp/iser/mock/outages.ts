/**
 * Initiator and target over iSER on a simulated fabric, in virtual time: packets are lost, the
 * network is cut, the target is killed and started again over the same disk. The initiator makes
 * its session anew and sends again what was not answered.
 */
import assert from 'node:assert/strict';
import { type Ia, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import {
  IscsiError,
  IscsiTarget,
  MemoryBackend,
} from '../../../../../../samples/ulp/iser/index.js';
import { ReconnectingSession } from '../../../../../../samples/ulp/iser/initiator/reconnecting-session.js';
import { prepare } from '../../../../../../samples/ulp/iser/initiator/options.js';
import type {
  InitiatorMover,
  MakeMover,
} from '../../../../../../samples/ulp/iser/mover/initiator/index.js';
import type { OutgoingPdu } from '../../../../../../samples/ulp/iser/session/initiator/index.js';
import * as wire from '../../../../../../samples/ulp/iser/wire/index.js';
import { randomOf } from '../../block/random.js';

const TARGET = '10.0.0.1';
const INITIATOR = '10.0.0.2';
const NAME = 'iqn.2026-01.example:outages';
const BLOCK_BYTES = 512;
const LANES = 6;
/** Blocks of each lane; no other lane touches them. */
const BLOCKS = 4;
const TURNS = 25;
const PAUSE_MS = 2000;
const LUN = wire.emitLun(0);

export interface Outages {
  readonly lossPercent?: number;
  /** Cuts of the network, for 0.1 to 12 s each. */
  readonly partitions?: number;
  /** The target dies, and is there again after 0.1 to 6 s. */
  readonly kills?: number;
  /** A mistake that the checks must find. */
  readonly plant?: 'a tag is used twice' | 'beyond the window' | 'a write is forgotten';
}

/** What came of a run. */
export interface Outcome {
  readonly commands: number;
  readonly sessions: number;
  readonly nowMs: number;
}

/** Judges what an initiator sends by what it has been sent: tags, CmdSN, the window. */
class Checked {
  private readonly inUse = new Set<number>();
  private cmdSn: number | undefined;
  private maxCmdSn = 0;
  sent = 0;

  onSend({ header }: OutgoingPdu): void {
    const whole = new Uint8Array(48);
    whole.set(header);
    whole.fill(0, 5, 8);
    const pdu = wire.readInitiatorPdu(whole);
    if (pdu.type !== 'scsiCommand') {
      if (pdu.type === 'loginRequest') this.cmdSn = pdu.header.cmdSn;
      return;
    }
    const { initiatorTaskTag: tag, cmdSn } = pdu.header;
    assert.ok(!this.inUse.has(tag), `tag ${tag} is in use`);
    assert.equal(cmdSn, this.cmdSn, 'commands are numbered in order');
    assert.ok(wire.serialDistance(cmdSn, this.maxCmdSn) <= 0, `CmdSN ${cmdSn} is in the window`);
    this.inUse.add(tag);
    this.cmdSn = wire.serialAdd(cmdSn, 1);
    this.sent++;
  }

  onPdu(pdu: wire.TargetPdu): void {
    const { maxCmdSn, expCmdSn } = pdu.header as unknown as { maxCmdSn: number; expCmdSn: number };
    if (wire.serialDistance(maxCmdSn, this.maxCmdSn) > 0 || this.sent === 0) {
      this.maxCmdSn = maxCmdSn;
    }
    assert.ok(wire.serialDistance(expCmdSn, maxCmdSn) <= 1);
    if (pdu.type === 'scsiResponse') this.inUse.delete(pdu.header.initiatorTaskTag);
  }

  /** @param bug planted: what the session sends is changed on its way into the check */
  wrap(make: MakeMover, bug: Outages['plant']): MakeMover {
    return (portal, host) => {
      this.inUse.clear();
      this.sent = 0;
      const mover = make(portal, {
        ...host,
        onConnected: () => host.onConnected(),
        onLost: (error) => host.onLost(error),
        onPdu: (pdu) => {
          // As if the target had not opened the window any further, and the session did not mind.
          if (bug !== 'beyond the window' || this.sent < 20) this.onPdu(pdu);
          else this.inUse.clear();
          host.onPdu(pdu);
        },
      });
      const checked: InitiatorMover = {
        send: (pdu) => {
          this.onSend(pdu);
          if (bug === 'a tag is used twice' && this.sent === 20) this.onSend(pdu);
          mover.send(pdu);
        },
        prepare: () => mover.prepare(),
        release: (task, transferred) => mover.release(task, transferred),
        allocate: (lengthBytes) => mover.allocate(lengthBytes),
        close: (how) => mover.close(how),
      };
      return checked;
    };
  }
}

export async function outages(seed: number, options: Outages): Promise<Outcome> {
  const { lossPercent = 0, partitions = 0, kills = 0, plant } = options;
  const fabric = new Fabric({ seed, autoRun: true, link: { lossPercent } });
  const random = randomOf(seed);
  const { clock } = fabric;
  const after = (ms: number, run: () => void): (() => void) => {
    let isCancelled = false;
    clock.at(clock.now() + ms * 1000, () => {
      if (!isCancelled) run();
    });
    return () => (isCancelled = true);
  };
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => after(ms, resolve));

  const backend = new MemoryBackend({ sizeBytes: LANES * BLOCKS * BLOCK_BYTES });
  const forgetful: MemoryBackend = plant === 'a write is forgotten' ? forgetting(backend) : backend;
  const start = async (): Promise<{ ia: Ia; target: IscsiTarget }> => {
    const ia = await openIa(mock({ fabric, address: TARGET }));
    const luns = new Map([[0, forgetful]]);
    const target = new IscsiTarget({ name: NAME, luns, alarm: after, memoryBytes: 1 << 20 });
    target.listenIser(ia);
    return { ia, target };
  };
  let there = await start();
  const ia = await openIa(mock({ fabric, address: INITIATOR }));
  const timing = { nowMs: () => clock.now() / 1000, after, random };
  let sessions = 0;
  const { options: made, free } = await prepare({ address: TARGET, ia, timing }, 'Normal', NAME);
  const checked = new Checked();
  const counted: MakeMover = (portal, host) => {
    sessions++;
    return checked.wrap(made.makeMover, plant)(portal, host);
  };
  const session = new ReconnectingSession({
    ...made,
    makeMover: counted,
    reconnect: { firstMs: 100, mostMs: 3000, attempts: 50 },
  });
  await session.start();

  let commands = 0;
  const lane = async (number: number): Promise<void> => {
    const own = randomOf(seed * 1000 + number);
    const latest = Array.from({ length: BLOCKS }, () => 0);
    for (let turn = 1; turn <= TURNS; turn++) {
      const block = Math.floor(own() * BLOCKS);
      const lba = BigInt(number * BLOCKS + block);
      const isWrite = own() < 0.5;
      const data = new Uint8Array(BLOCK_BYTES).fill(isWrite ? turn : 0);
      const transfer = { lba, transferLength: 1 };
      const answer = await session.execute({
        lun: LUN,
        cdb: (isWrite ? wire.write16 : wire.read16).make(transfer).bytes,
        ...(isWrite ? { dataOut: data } : { dataIn: data }),
        isRepeatable: true,
        timeoutMs: 20_000,
      });
      commands++;
      assert.equal(answer.status, wire.SCSI_STATUS.GOOD);
      if (isWrite) latest[block] = turn;
      const expected = latest[block]!;
      assert.ok(
        data.every((byte) => byte === expected),
        `lane ${number}, block ${block}: has ${data[0]}, must have ${expected}`,
      );
      await sleep(own() * PAUSE_MS);
    }
  };
  const trouble = async (): Promise<void> => {
    const all = [
      ...Array.from({ length: partitions }, () => 'partition' as const),
      ...Array.from({ length: kills }, () => 'kill' as const),
    ];
    for (const what of all) {
      await sleep(random() * 3000);
      if (what === 'partition') {
        fabric.partition([INITIATOR], [TARGET]);
        await sleep(100 + random() * 12_000);
        fabric.heal();
      } else {
        // Nothing is said to the initiator.
        fabric.partition([INITIATOR], [TARGET]);
        await there.target.close(0);
        await there.ia.close('abrupt');
        await sleep(100 + random() * 6000);
        fabric.heal();
        there = await start();
      }
    }
  };
  try {
    await Promise.all([trouble(), ...Array.from({ length: LANES }, (_, n) => lane(n))]);
  } finally {
    await session.close();
    await assert.rejects(
      session.execute({ lun: LUN, cdb: wire.testUnitReady.make({}).bytes, isRepeatable: true }),
      (error) => error instanceof IscsiError && error.code === 'ISCSI_CLOSED',
    );
    await free();
    await there.target.close(0);
    await Promise.all([ia.close('abrupt'), there.ia.close('abrupt')]);
  }
  return { commands, sessions, nowMs: clock.now() / 1000 };
}

/** Each tenth write is answered, and not done. */
function forgetting(backend: MemoryBackend): MemoryBackend {
  let writes = 0;
  const write = backend.write.bind(backend);
  backend.write = async (lba, from) => {
    if (++writes % 10 !== 0) await write(lba, from);
  };
  return backend;
}
