/**
 * Memory that its owner never touched, and a peer reads where it lies, counts as its owner's: a
 * reader whose memory cgroup is smaller than that memory lives on.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { openIa, RemoteSegment } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { CONN_QUAL, Peer } from '../../plugins/testing/suite/peer.js';
import { leaveOut } from '../support/left-out.js';
import { loopback } from '../support/loopback.js';
import { paused } from '../support/patience.js';

const CONTROLLER = '/sys/fs/cgroup/memory';
const LIMIT_BYTES = 160 << 20;
const UNTOUCHED_BYTES = 384 << 20;
const MESSAGE_BYTES = 1 << 20;
const PROGRAM = join(import.meta.dirname, 'limited-reader.js');
const [SENDER, READER] = [loopback(2, 65), loopback(2, 66)];

describe('a reader in a small memory cgroup', function () {
  this.timeout(120_000);
  const group = join(CONTROLLER, `dapl-test-${process.pid}`);
  let reader: ChildProcess | undefined;

  before(function () {
    const limit = 'memory.limit_in_bytes';
    if (process.geteuid?.() === 0 && existsSync(join(CONTROLLER, limit))) {
      mkdirSync(group);
      writeFileSync(join(group, limit), String(LIMIT_BYTES));
      return;
    }
    leaveOut(this, 'no memory controller of cgroup v1, or no root', 'mount it, and run as root');
  });

  after(async () => {
    if (reader?.exitCode === null && reader.signalCode === null) {
      reader.kill('SIGKILL');
      await once(reader, 'exit');
    }
    if (!existsSync(group)) return;
    while (readFileSync(join(group, 'cgroup.procs'), 'utf8') !== '') await paused(10);
    rmdirSync(group);
  });

  it('is not charged for what its peer sends without having touched it', async () => {
    reader = spawn(process.execPath, [PROGRAM, READER, join(group, 'cgroup.procs')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface(reader.stdout!)[Symbol.asyncIterator]();
    assert.equal((await lines.next()).value, 'ready');
    const ia = await openIa(softroce({ addresses: [SENDER] }));
    const peer = new Peer(ia);
    const untouched = ia.allocate(UNTOUCHED_BYTES, { pz: peer.pz });
    peer.ep.connect({ address: READER, connQual: CONN_QUAL });
    const [event] = await peer.expect('ESTABLISHED');
    assert.ok(event?.type === 'connection');
    const { buffer, byteOffset } = event.privateData;
    const view = new DataView(buffer, byteOffset);
    const [address, rmrContext] = [view.getBigUint64(0), view.getUint32(8)];
    const remote = new RemoteSegment({ address, rmrContext });
    for (let at = 0; at < UNTOUCHED_BYTES; at += MESSAGE_BYTES) {
      peer.ep.postRdmaWrite(untouched.segment(at, MESSAGE_BYTES), 1, remote);
      await peer.expect('dto 1 SUCCESS');
    }
    peer.ep.postSend(peer.lmr.segment(0, 64), 2);
    await peer.expect('dto 2 SUCCESS');
    const packets = Number((await lines.next()).value);
    assert.ok(packets >= UNTOUCHED_BYTES / MESSAGE_BYTES, `${packets} by shared memory`);
    const most = Number(readFileSync(join(group, 'memory.max_usage_in_bytes'), 'utf8'));
    assert.ok(most < LIMIT_BYTES, `${most} bytes`);
    await ia.close('abrupt');
  });
});
